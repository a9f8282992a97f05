// Not everything is a tensor: Prefetcher<T> loads any movable type ahead, in order, with one worker or many. Here
// meshes, each with as many points as it likes; the consumer may keep what it gets.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <stoker/core.hpp>

struct Mesh {
    std::string name;
    std::vector<double> x, y;
};

// Any function that loads something. Several threads call it at once, so it changes nothing that they share.
Mesh load_polygon(std::uint64_t corners) {
    Mesh mesh{.name = "polygon-" + std::to_string(corners), .x = {}, .y = {}};
    for (std::uint64_t corner = 0; corner < corners; ++corner) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(corner) / static_cast<double>(corners);
        mesh.x.push_back(std::cos(angle));
        mesh.y.push_back(std::sin(angle));
    }
    return mesh;
}

int main() {
    const auto load = [](stoker::Sample& sample) { return load_polygon(sample.index() + 3); };
    stoker::Prefetcher<Mesh> feed{stoker::values(20, load), {.workers = 3, .prefetch_batches = 4}};
    std::vector<Mesh> kept;
    for (auto&& mesh : feed.epoch()) {  // *mesh is a Mesh&
        if (mesh->x.size() % 2 == 0) {
            kept.push_back(std::move(*mesh));
        }
    }
    bool is_right = kept.size() == 10 && feed.report().batches == 20;  // of 3 ... 22 corners: 4, 6, ... 22
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::size_t corners = 2 * i + 4;
        is_right = is_right && kept[i].name == "polygon-" + std::to_string(corners) && kept[i].x.size() == corners;
    }
    std::puts(is_right ? "20 meshes came in order, 10 were kept" : "WRONG");
    return is_right ? 0 : 1;
}
