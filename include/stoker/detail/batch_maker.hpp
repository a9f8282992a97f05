// SPDX-License-Identifier: MIT
/// @file
/// From a batch's plan entries to a batch in its final form: calls the source, keeps what failed, closes the gaps.
/// Knows nothing of the ring and its lock; who calls what when is the engine's affair (detail/core.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <stoker/batch_info.hpp>
#include <stoker/detail/failures.hpp>
#include <stoker/detail/slots.hpp>
#include <stoker/detail/source_model.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/detail/worker.hpp>
#include <stoker/options.hpp>
#include <stoker/plan.hpp>
#include <stoker/report.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

template <class B>
class BatchMaker {
    static constexpr bool is_tensor = TensorBatch<B>;
    using Batch = BatchInMaking<B>;

    /// Times the phases of one sample and asks the gate for room.
    class Hook final : public FetchHook {
      public:
        Hook(BatchMaker& maker, Worker& worker, std::uint64_t ticket) noexcept
            : gate_{maker.gate_ ? &*maker.gate_ : nullptr}, worker_{&worker}, ticket_{ticket} {}
        Hook(const Hook&) = delete;
        Hook& operator=(const Hook&) = delete;
        ~Hook() { leave(); }
        void before_fetch(std::optional<std::size_t> known_bytes) override {
            if (gate_ != nullptr) {
                worker_->last = Clock::now();
                counted_ = gate_->enter(ticket_, known_bytes);
                is_inside_ = true;
                worker_->account(worker_->waited_for_budget);
            }
        }
        void after_fetch(std::optional<std::size_t> bytes) override {
            worker_->account(worker_->fetch);
            if (is_inside_ && bytes) {
                counted_ = gate_->correct(counted_, *bytes);
            }
        }
        void leave() noexcept {
            if (is_inside_) {
                is_inside_ = false;
                gate_->leave(counted_);
            }
        }

      private:
        ItemGate* gate_;
        Worker* worker_;
        std::uint64_t ticket_;
        std::size_t counted_ = 0;
        bool is_inside_ = false;
    };

  public:
    /// `options`, `arena` and `plan` outlive the maker; `arena` is none for plain values, `plan` for a generator.
    BatchMaker(std::unique_ptr<SourceModel<B>> source, const PrefetcherOptions& options,
               const std::optional<ArenaLayout>& arena, const std::optional<Plan>& plan, std::size_t item_share)
        : source_{std::move(source)},
          options_{options},
          arena_{arena},
          plan_{plan},
          is_whole_batch_{source_->is_whole_batch()},
          has_finish_{source_->has_finish()} {
        if (options_.max_bytes && source_->has_fetch()) {
            gate_.emplace(item_share);
        }
        if constexpr (is_tensor) {
            pack_scratch_.resize(arena_->scratch_bytes());
        }
    }

    [[nodiscard]] SourceModel<B>& source() noexcept { return *source_; }
    [[nodiscard]] const SourceModel<B>& source() const noexcept { return *source_; }
    [[nodiscard]] bool is_whole_batch() const noexcept { return is_whole_batch_; }

    /// Nobody waits for room any more.
    void stop() {
        if (gate_) {
            gate_->stop();
        }
    }

    // ---- Rows ------------------------------------------------------------------------------------------------------

    /// Ticket `unit` of a random-access source's batch: one row, or the whole batch. Concurrent.
    void make(Worker& worker, Batch& batch, std::uint32_t unit) {
        if (batch.rows == 0) {
            // an empty batch has one ticket and no row
        } else if (is_whole_batch_) {
            make_batch(worker, batch);
        } else {
            make_row(worker, batch, unit);
        }
    }

    /// Row `unit` of a generator's batch. The generator's turn is the caller's from its making until `pull` returns.
    class Pull {
      public:
        Pull(BatchMaker& maker, Worker& worker, Batch& batch, std::uint32_t unit) noexcept
            : maker_{maker},
              worker_{worker},
              batch_{batch},
              unit_{unit},
              sample_{start(batch, unit), batch.record.info.epoch_, batch.results[unit].position,
                      maker.options_.order.seed(), worker.context},
              hook_{maker, worker, batch.first_ticket + unit} {
            worker.is_at(batch.sequence, sample_.index());
        }
        Pull(const Pull&) = delete;
        Pull& operator=(const Pull&) = delete;
        ~Pull() {
            hook_.leave();
            worker_.account(worker_.fill);
            worker_.is_at_nothing();
        }
        /// The first phase. @return false: the generator had nothing more
        [[nodiscard]] bool pull() {
            try {
                return maker_.source_->pull(*batch_.content, unit_, sample_, hook_);
            } catch (...) {
                fail();
                return true;
            }
        }
        /// The second phase, of a sample that was there; concurrent.
        void fill() {
            RowResult& result = batch_.results[unit_];
            if (!result.error) {
                try {
                    maker_.source_->fill_pulled(*batch_.content, unit_, sample_);
                } catch (...) {
                    fail();
                }
            }
            if constexpr (is_tensor) {
                batch_.content->complete(unit_, !result.error);
            }
        }

      private:
        static std::uint64_t start(Batch& batch, std::uint32_t unit) noexcept {
            RowResult& result = batch.results[unit];
            result.position = batch.record.info.position_ + unit;
            result.id = result.position;
            result.error = nullptr;
            result.replaced_error = nullptr;
            return result.id;
        }
        void fail() noexcept {
            RowResult& result = batch_.results[unit_];
            result.error =
                maker_.sample_error(std::current_exception(), result.id, result.position, batch_.record.info);
        }

        BatchMaker& maker_;
        Worker& worker_;
        Batch& batch_;
        std::uint32_t unit_;
        Sample sample_;
        Hook hook_;
    };

    /// Moves the generator behind `count` samples of `epoch`; one that cannot skip gives them to nobody. In its turn.
    void pass_over(std::uint64_t epoch, std::uint64_t count, std::stop_token stop) {
        if (source_->can_skip()) {
            source_->skip(count);
            return;
        }
        WorkerContext context;
        context.stop = std::move(stop);
        class NoHook final : public FetchHook {
            void before_fetch(std::optional<std::size_t>) override {}
            void after_fetch(std::optional<std::size_t>) override {}
        } hook;
        const std::size_t bytes = arena_ && arena_->bytes() != 0 ? arena_->bytes() : 1;
        const auto memory = std::unique_ptr<std::byte[], void (*)(std::byte*)>{
            static_cast<std::byte*>(::operator new(bytes, std::align_val_t{ArenaLayout::alignment})),
            [](std::byte* p) { ::operator delete(p, std::align_val_t{ArenaLayout::alignment}); }};
        std::optional<Content<B>> content;
        if constexpr (is_tensor) {
            content.emplace(*arena_, memory.get());
        } else {
            content.emplace();
        }
        for (std::uint64_t i = 0; i < count && !context.stop.stop_requested(); ++i) {
            if constexpr (is_tensor) {
                content->clear();
            }
            Sample sample{i, epoch, i, options_.order.seed(), context};
            try {
                if (!source_->pull(*content, 0, sample, hook)) {
                    return;
                }
            } catch (...) {  // a sample that failed counted as consumed when the state was saved
            }
        }
    }

    // ---- The batch as a whole --------------------------------------------------------------------------------------

    /// Puts the batch in its final form: failures noted, gaps closed, ragged fields packed, `finish` called. By one
    /// thread, when every row has ended.
    void seal(Worker& worker, Batch& batch) {
        Record<B>& record = batch.record;
        BatchInfo& info = record.info;
        worker.order.clear();
        if (batch.error) {
            note_failure(record, std::exchange(batch.error, nullptr), std::nullopt, batch.rows);
        } else {
            for (std::size_t i = 0; i < batch.rows; ++i) {
                seal_row(worker, batch, i);
            }
        }
        if constexpr (is_tensor) {
            arrange(worker, batch, worker.order);
            bind(batch, batch.memory, MemorySpace::host);
            if (has_finish_ && !info.ids_.empty()) {
                finish(worker, batch);
            }
            if (options_.last_batch == LastBatch::pad) {
                batch.content->pad(info.rows_, options_.batch_size);
                info.rows_ = options_.batch_size;
            }
            info.used_bytes_ = batch.content->used_bytes();
            bind(batch, batch.memory, MemorySpace::host);
        } else {
            info.rows_ = info.ids_.size();
        }
        worker.account(worker.finish);
    }

    /// Points the view's fields into `memory`.
    void bind(Batch& batch, void* memory, MemorySpace space) {
        batch.record.view = bind_fields<B>(BatchTraits<B>::fields, *arena_, static_cast<std::byte*>(memory),
                                           batch.record.info.rows_, *batch.content, space);
    }

    // ---- What failed -----------------------------------------------------------------------------------------------

    /// A cancelled batch has ended. `keep`: what failed in it is counted, since nobody will see it otherwise.
    void forget(Batch& batch, bool keep) {
        for (RowResult& result : batch.results) {
            if (result.error && keep) {
                list(failure_of(result.error, std::nullopt), 0);
            }
            result.error = nullptr;
            result.replaced_error = nullptr;
        }
        if (batch.error && keep) {
            list(failure_of(batch.error, std::nullopt), 0);
        }
        batch.error = nullptr;
    }
    /// The last ones, oldest first.
    [[nodiscard]] std::vector<Failure> failures() const {
        const std::lock_guard lock{failures_mutex_};
        return failures_.list();
    }
    void count_failures(Report& report) const {
        const std::lock_guard lock{failures_mutex_};
        report.failures = failures_.count();
        report.skipped = failures_.skipped();
        report.substituted = failures_.substituted();
    }

    [[nodiscard]] std::string path_of(std::uint64_t index) const noexcept {
        try {
            return source_->describe(index);
        } catch (...) {
            return {};
        }
    }
    void warn(std::uint64_t index, std::string message) {
        if (options_.on_event) {
            options_.on_event({Event::Kind::sample_warning, index, path_of(index), std::move(message)});
        }
    }

  private:
    void make_row(Worker& worker, Batch& batch, std::uint32_t unit) {
        RowResult& result = batch.results[unit];
        const std::uint64_t position = batch.plan.position(batch.k, unit);
        result.position = position;
        result.id = batch.plan.index(position);
        result.error = nullptr;
        result.replaced_error = nullptr;
        bool is_ok = attempt(worker, batch, unit, result.id);
        if (!is_ok && options_.on_error == OnError::substitute) {
            std::exception_ptr first = result.error;
            for (std::uint32_t n = 1; n <= 8 && !is_ok && !worker.context.stop.stop_requested(); ++n) {
                const std::uint64_t id = plan_->substitute(batch.record.info.epoch_, position, n);
                is_ok = attempt(worker, batch, unit, id);
                if (is_ok) {
                    result.id = id;
                }
            }
            (is_ok ? result.replaced_error : result.error) = std::move(first);
        }
        if constexpr (is_tensor) {
            batch.content->complete(unit, is_ok);
        }
        worker.is_at_nothing();
    }

    /// Makes sample `id` in row `unit`. @return whether it worked; else the row's result says why
    bool attempt(Worker& worker, Batch& batch, std::uint32_t unit, std::uint64_t id) {
        RowResult& result = batch.results[unit];
        worker.is_at(batch.sequence, id);
        if constexpr (is_tensor) {
            batch.content->forget(unit);  // what an earlier attempt left
        }
        Sample sample{id, batch.record.info.epoch_, result.position, options_.order.seed(), worker.context};
        bool is_ok = true;
        try {
            Hook hook{*this, worker, batch.first_ticket + unit};
            source_->load(*batch.content, unit, sample, hook);
            result.error = nullptr;
        } catch (...) {
            is_ok = false;
            result.error = sample_error(std::current_exception(), id, result.position, batch.record.info);
        }
        worker.account(worker.fill);
        return is_ok;
    }

    void make_batch(Worker& worker, Batch& batch) {
        worker.ids.clear();
        worker.positions.clear();
        for (std::size_t i = 0; i < batch.rows; ++i) {
            RowResult& result = batch.results[i];
            result.position = batch.plan.position(batch.k, i);
            result.id = batch.plan.index(result.position);
            result.error = nullptr;
            result.replaced_error = nullptr;
            worker.ids.push_back(result.id);
            worker.positions.push_back(result.position);
        }
        worker.is_at(batch.sequence, worker.ids[0]);
        const BatchInfo& info = batch.record.info;
        bool is_ok = true;
        try {
            BatchContext context{info.epoch_,           info.batch_, info.position_,
                                 options_.order.seed(), worker.ids,  worker.positions,
                                 worker.context,        nullptr,     nullptr};
            source_->load_batch(*batch.content, batch.rows, context);
        } catch (...) {
            is_ok = false;
            fail_batch(batch, std::current_exception());
        }
        if constexpr (is_tensor) {
            for (std::size_t i = 0; i < batch.rows; ++i) {
                batch.content->complete(i, is_ok);
            }
        }
        worker.account(worker.fill);
        worker.is_at_nothing();
    }

    /// All rows of the batch are lost, and one failure tells it. By the one thread that has the batch.
    void fail_batch(Batch& batch, const std::exception_ptr& cause) {
        const BatchInfo& info = batch.record.info;
        Text ids;
        for (std::size_t i = 0; i < batch.rows; ++i) {
            ids.add(i == 0 ? "" : ", ").add(batch.results[i].id);
        }
        batch.error = make_batch_error(cause, batch.results[0].id, info.epoch_, info.position_, info.batch_, ids.str());
    }

    /// Row `i` survives, and is then the next of worker.order, or is noted as failed.
    void seal_row(Worker& worker, Batch& batch, std::size_t i) {
        BatchInfo& info = batch.record.info;
        RowResult& result = batch.results[i];
        if constexpr (is_tensor) {
            if (!result.error) {
                if (std::string over = batch.content->over(i); !over.empty()) {
                    const DataError cause{ErrorKind::capacity, over};
                    result.error = sample_error(std::make_exception_ptr(cause), result.id, result.position, info);
                }
            }
        }
        if (result.error) {
            note_failure(batch.record, std::exchange(result.error, nullptr), std::nullopt, 1);
            result.replaced_error = nullptr;
            return;
        }
        if (result.replaced_error) {
            note_failure(batch.record, std::exchange(result.replaced_error, nullptr), result.id, 0);
        }
        worker.order.push_back(i);
        info.ids_.push_back(result.id);
    }

    void arrange(Worker& worker, Batch& batch, std::span<const std::size_t> order) {
        bool is_whole = order.size() == arena_->rows() && !arena_->has_ragged();
        for (std::size_t i = 0; is_whole && i < order.size(); ++i) {
            is_whole = order[i] == i;
        }
        if (!is_whole) {
            std::unique_lock<std::mutex> pack_lock{pack_mutex_, std::defer_lock};
            if (arena_->has_ragged()) {
                pack_lock.lock();
            }
            batch.content->arrange(order, pack_scratch_, worker.row_scratch);
        }
        batch.record.info.rows_ = order.size();
    }

    void finish(Worker& worker, Batch& batch) {
        BatchInfo& info = batch.record.info;
        struct Rows {
            BatchMaker* maker;
            Worker* worker;
            Batch* batch;
        } target{this, &worker, &batch};
        const auto permute = [](void* self, std::span<const std::size_t> order) {
            const Rows& t = *static_cast<Rows*>(self);
            std::vector<std::uint64_t>& ids = t.batch->record.info.ids_;
            t.worker->ids.assign(ids.begin(), ids.end());
            for (std::size_t i = 0; i < order.size(); ++i) {
                ids[i] = t.worker->ids[order[i]];
            }
            t.maker->arrange(*t.worker, *t.batch, order);
            t.maker->bind(*t.batch, t.batch->memory, MemorySpace::host);
        };
        try {
            BatchContext context{info.epoch_,
                                 info.batch_,
                                 info.position_,
                                 options_.order.seed(),
                                 {info.ids_.data(), info.ids_.size()},
                                 {},
                                 worker.context,
                                 permute,
                                 &target};
            source_->finish(batch.record.view, context);
        } catch (...) {
            const std::size_t lost = info.ids_.size();
            fail_batch(batch, std::current_exception());
            note_failure(batch.record, std::exchange(batch.error, nullptr), std::nullopt, lost);
            info.ids_.clear();
            arrange(worker, batch, {});
        }
    }

    /// Lists a failure; under OnError::fail it is thrown before the batch is delivered. `lost`: rows that are missing.
    void note_failure(Record<B>& record, const std::exception_ptr& error, std::optional<std::uint64_t> replaced_by,
                      std::size_t lost) {
        const Failure failure = failure_of(error, replaced_by);
        record.info.failures_.push_back(failure);
        if (options_.on_error == OnError::fail) {
            record.errors.push_back(error);
        }
        list(failure, options_.on_error == OnError::fail ? 0 : lost);
        if (options_.on_event) {
            options_.on_event({Event::Kind::sample_failed, failure.index, failure.path, failure.message});
        }
    }
    void list(const Failure& failure, std::size_t lost) {
        const std::lock_guard lock{failures_mutex_};
        failures_.add(failure, lost);
    }

    /// The cause wrapped in a SampleError; the cause itself where there is no memory for that.
    [[nodiscard]] std::exception_ptr sample_error(const std::exception_ptr& cause, std::uint64_t index,
                                                  std::uint64_t position, const BatchInfo& info) const noexcept {
        try {
            return make_sample_error(cause, index, info.epoch_, position, info.batch_, path_of(index),
                                     options_.on_error);
        } catch (...) {
            return cause;
        }
    }

    std::unique_ptr<SourceModel<B>> source_;
    const PrefetcherOptions& options_;
    const std::optional<ArenaLayout>& arena_;
    const std::optional<Plan>& plan_;
    const bool is_whole_batch_, has_finish_;
    std::optional<ItemGate> gate_;

    std::mutex pack_mutex_;                // one batch is packed at a time
    std::vector<std::byte> pack_scratch_;  // under pack_mutex_

    mutable std::mutex failures_mutex_;
    FailureLog failures_;  // under failures_mutex_
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
