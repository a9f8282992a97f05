// A small classifier: brightness and edges on a 6 x 6 grid, one hidden layer, softmax; plain SGD with momentum.
// Everything runs on the calling thread in a fixed order, so the weights depend on nothing but the batches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <stoker/random.hpp>
#include <stoker/tensor.hpp>

class Model {
  public:
    static constexpr std::size_t grid = 6;
    static constexpr std::size_t inputs = 3 * grid * grid;
    static constexpr std::size_t hidden = 48;

    Model(std::size_t classes, std::uint64_t seed)
        : classes_{classes}, weights_(parameters(classes)), momentum_(weights_.size()), gradient_(weights_.size()) {
        stoker::Random random{seed, 0, 0};
        const std::size_t first = hidden * inputs;
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            const double fan_in = i < first ? static_cast<double>(inputs) : static_cast<double>(hidden);
            weights_[i] = static_cast<float>(random.uniform(-1.0, 1.0) * std::sqrt(3.0 / fan_in));
        }
    }

    [[nodiscard]] static std::size_t parameters(std::size_t classes) {
        return hidden * inputs + hidden + classes * hidden + classes;
    }
    [[nodiscard]] std::vector<float>& weights() noexcept { return weights_; }
    [[nodiscard]] std::vector<float>& momentum() noexcept { return momentum_; }

    struct Score {
        double loss = 0;  // sum over the pictures
        std::uint64_t right = 0, count = 0;
        [[nodiscard]] double mean_loss() const { return count == 0 ? 0 : loss / static_cast<double>(count); }
        [[nodiscard]] double accuracy() const {
            return count == 0 ? 0 : static_cast<double>(right) / static_cast<double>(count);
        }
        void add(const Score& other) {
            loss += other.loss;
            right += other.right;
            count += other.count;
        }
    };

    /// One step on `count` pictures (N x H x W x 3) and their labels.
    Score train(const stoker::Tensor<std::uint8_t, 4>& images, std::span<const std::int32_t> labels, float rate) {
        std::fill(gradient_.begin(), gradient_.end(), 0.0F);
        const Score score = run(images, labels, true);
        const float scale = 1.0F / static_cast<float>(labels.empty() ? 1 : labels.size());
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            momentum_[i] = 0.9F * momentum_[i] + gradient_[i] * scale;
            weights_[i] -= rate * momentum_[i];
        }
        return score;
    }
    Score evaluate(const stoker::Tensor<std::uint8_t, 4>& images, std::span<const std::int32_t> labels) {
        return run(images, labels, false);
    }

  private:
    void features(const stoker::Tensor<std::uint8_t, 3>& image, std::vector<float>& x) const {
        const std::size_t height = image.extent(0), width = image.extent(1);
        x.assign(inputs, 0.0F);
        std::vector<float> cells(grid * grid, 0.0F);
        const auto grey = [&](std::size_t r, std::size_t c) {
            const std::uint8_t* const p = image.data() + 3 * (r * width + c);
            return static_cast<float>(p[0]) + static_cast<float>(p[1]) + static_cast<float>(p[2]);
        };
        for (std::size_t r = 0; r + 1 < height; ++r) {
            for (std::size_t c = 0; c + 1 < width; ++c) {
                const std::size_t cell = r * grid / height * grid + c * grid / width;
                const float here = grey(r, c);
                x[cell] += here - 382.0F;
                x[grid * grid + cell] += std::fabs(grey(r, c + 1) - here);
                x[2 * grid * grid + cell] += std::fabs(grey(r + 1, c) - here);
                cells[cell] += 1.0F;
            }
        }
        for (std::size_t i = 0; i < inputs; ++i) {
            const float n = cells[i % (grid * grid)];
            x[i] = n == 0.0F ? 0.0F : x[i] / n / 200.0F;
        }
    }

    Score run(const stoker::Tensor<std::uint8_t, 4>& images, std::span<const std::int32_t> labels, bool is_training) {
        Score score;
        const float* const w1 = weights_.data();
        const float* const b1 = w1 + hidden * inputs;
        const float* const w2 = b1 + hidden;
        const float* const b2 = w2 + classes_ * hidden;
        std::vector<float> x, h(hidden), p(classes_), dh(hidden);
        for (std::size_t n = 0; n < labels.size(); ++n) {
            features(images[n], x);
            for (std::size_t j = 0; j < hidden; ++j) {
                float sum = b1[j];
                for (std::size_t i = 0; i < inputs; ++i) {
                    sum += w1[j * inputs + i] * x[i];
                }
                h[j] = sum > 0 ? sum : 0;
            }
            float most = -1e30F;
            std::size_t best = 0;
            for (std::size_t k = 0; k < classes_; ++k) {
                float sum = b2[k];
                for (std::size_t j = 0; j < hidden; ++j) {
                    sum += w2[k * hidden + j] * h[j];
                }
                p[k] = sum;
                best = sum > most ? k : best;
                most = sum > most ? sum : most;
            }
            float total = 0;
            for (float& value : p) {
                value = std::exp(value - most);
                total += value;
            }
            const auto label = static_cast<std::size_t>(labels[n]);
            score.loss -= std::log(static_cast<double>(p[label] / total) + 1e-12);
            score.right += best == label ? 1 : 0;
            ++score.count;
            if (!is_training) {
                continue;
            }
            float* const g1 = gradient_.data();
            float* const gb1 = g1 + hidden * inputs;
            float* const g2 = gb1 + hidden;
            float* const gb2 = g2 + classes_ * hidden;
            std::fill(dh.begin(), dh.end(), 0.0F);
            for (std::size_t k = 0; k < classes_; ++k) {
                const float d = p[k] / total - (k == label ? 1.0F : 0.0F);
                gb2[k] += d;
                for (std::size_t j = 0; j < hidden; ++j) {
                    g2[k * hidden + j] += d * h[j];
                    dh[j] += d * w2[k * hidden + j];
                }
            }
            for (std::size_t j = 0; j < hidden; ++j) {
                if (h[j] > 0) {
                    gb1[j] += dh[j];
                    for (std::size_t i = 0; i < inputs; ++i) {
                        g1[j * inputs + i] += dh[j] * x[i];
                    }
                }
            }
        }
        return score;
    }

    std::size_t classes_;
    std::vector<float> weights_, momentum_, gradient_;
};

/// FNV-1a over the weights' bytes: two runs that print the same number have the same weights, bit for bit.
inline std::uint64_t hash_of(const std::vector<float>& weights) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(weights.data());
    for (std::size_t i = 0; i < weights.size() * sizeof(float); ++i) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}
