// What the trainer says: one line that moves on a terminal, and plain lines there and in a log file.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

/// printf into a string.
[[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
    char line[1000];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}

class Progress {
  public:
    enum class Log { anew, append };

    /// @throws std::runtime_error  the log cannot be written.
    Progress(const std::filesystem::path& path, Log log)
        : log_{path, log == Log::append ? std::ios::app : std::ios::trunc} {
        if (!log_) {
            throw std::runtime_error{"cannot write the log \"" + path.string() + "\""};
        }
    }

    /// A line that stays.
    void say(const std::string& line) {
        clear();
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
        log(line);
    }
    /// A line for the log file alone.
    void log(const std::string& line) { log_ << line << std::endl; }
    /// The line that moves: shown on a terminal only, ten times a second at most, never wider than the terminal.
    void show(const std::string& line) {
        const auto now = std::chrono::steady_clock::now();
        if (!is_terminal_ || now - shown_ < std::chrono::milliseconds{100}) {
            return;
        }
        shown_ = now;
        winsize window{};
        const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
        const std::string visible = line.substr(0, is_known ? window.ws_col - 1U : 79U);
        std::printf("\r%-*s", static_cast<int>(width_), visible.c_str());
        std::fflush(stdout);
        width_ = visible.size();
    }

  private:
    void clear() {
        if (width_ != 0) {
            std::printf("\r%*s\r", static_cast<int>(width_), "");
            width_ = 0;
        }
    }

    std::ofstream log_;
    bool is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
    std::size_t width_ = 0;  // of the moving line that stands there
    std::chrono::steady_clock::time_point shown_{};
};
