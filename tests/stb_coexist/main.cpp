// SPDX-License-Identifier: MIT
// Our stb_image and the application's in one program. Arguments: the two plug-ins.
// B020: a global flip flag of the application's does not reach us. B022: nor does one in an object that is opened late.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "coexist.hpp"

namespace {

int failures = 0;

void check(bool condition, const char* what) {
    if (!condition) {
        std::fprintf(stderr, "failed: %s\n", what);
        ++failures;
    }
}

}  // namespace

int main(int argc, char** argv) {
    using namespace coexist;
    check(a_is_upright() == 1, "ours, before the application's code");
    check(b_is_upright() == 1, "ours, behind the application's declarations");
    check(static_copy_is_upright() == 1, "ours, behind a static copy with a flipped flag");
    check(application_is_upright() == 1, "the application's own");
    check(std::strstr(application_reason(), "Image not of any known type") != nullptr,
          "the application's own settings");
    application_flips(true);
    check(application_is_upright() == 0, "the application's flag works");
    check(a_is_upright() == 1 && b_is_upright() == 1, "its flag does not reach ours");
    {
        std::atomic<bool> done{false};
        std::jthread toggler{[&done] {
            for (bool flips = false; !done; flips = !flips) {
                application_flips(flips);
            }
        }};
        int upright = 0;
        for (int i = 0; i < 200; ++i) {
            upright += a_is_upright();
        }
        done = true;
        check(upright == 200, "200 pictures while the flag is toggled");
    }
    std::latch opened{1};
    std::vector<int (*)()> plugins;
    std::atomic<int> upright{0};
    {
        std::vector<std::jthread> threads;  // older than the plug-ins
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                opened.wait();
                for (int (*const plugin)() : plugins) {
                    for (int i = 0; i < 20; ++i) {
                        upright += plugin();
                    }
                }
            });
        }
        for (int i = 1; i < argc; ++i) {
            void* const object = ::dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
            check(object != nullptr, argv[i]);
            if (object != nullptr) {
                plugins.push_back(reinterpret_cast<int (*)()>(::dlsym(object, "plugin_is_upright")));
            }
        }
        opened.count_down();
    }
    check(upright == 80 * (argc - 1), "plug-ins opened late");
    return failures == 0 ? 0 : 1;
}
