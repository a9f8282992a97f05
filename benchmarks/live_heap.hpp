// SPDX-License-Identifier: MIT
/// @file
/// Counts the bytes that are allocated and not freed, whoever allocates them: takes the place of malloc and its kin,
/// which operator new and C libraries come to in the end. For glibc. To be included in one source file of a program:
/// its functions are the program's.
#pragma once

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#if __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // clang's declares posix_memalign again, which has to come before it is defined
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>

// glibc's own names of its functions, for programs that put something in front of them.
extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* memory, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;
void __libc_free(void* memory) noexcept;
}

namespace benchmarks {

inline constinit std::atomic<std::int64_t> live_heap{0};  // bytes; a count, publishes nothing else

/// Bytes allocated and not freed, on all threads, as the allocator rounds them.
[[nodiscard]] inline std::int64_t live_bytes() noexcept { return live_heap.load(); }

inline void* count_allocated(void* memory) noexcept {
    live_heap.fetch_add(static_cast<std::int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
    return memory;
}
inline void* count_freed(void* memory) noexcept {
    live_heap.fetch_sub(static_cast<std::int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
    return memory;
}

}  // namespace benchmarks

extern "C" {
void* malloc(std::size_t size) noexcept { return benchmarks::count_allocated(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept {
    return benchmarks::count_allocated(__libc_calloc(count, size));
}
void* realloc(void* memory, std::size_t size) noexcept {
    benchmarks::count_freed(memory);
    void* const grown = __libc_realloc(memory, size);
    benchmarks::count_allocated(grown == nullptr && size != 0 ? memory
                                                              : grown);  // where it failed, the old one lives on
    return grown;
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return benchmarks::count_allocated(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
    *memory = memalign(alignment, size);
    return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept { __libc_free(benchmarks::count_freed(memory)); }
}
