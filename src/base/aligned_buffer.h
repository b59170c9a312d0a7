// A growing array on cache-line boundaries whose content is left uninitialised: workspaces of kernels, made
// once and reused. Large ones ask for huge pages: a matrix product walks over more rows than the first-level
// TLB has entries for small pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace wring {

template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size) { reserve(size); }
  ~AlignedBuffer() { release(); }
  AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      capacity_ = std::exchange(other.capacity_, 0);
      alignment_ = other.alignment_;
    }
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  /// Room for at least `size` elements; what was there is lost if the buffer grows. Throws std::bad_alloc.
  void reserve(std::size_t size) {
    if (size <= capacity_) return;
    release();
    std::size_t bytes = size * sizeof(T);
    alignment_ = kAlignment;
    if (bytes >= kHugePage / 2) {
      bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
      alignment_ = kHugePage;
    }
    data_ = static_cast<T*>(::operator new (bytes, std::align_val_t{alignment_}));
    capacity_ = bytes / sizeof(T);
    if (alignment_ == kHugePage) ::madvise(data_, bytes, MADV_HUGEPAGE);  // a wish: small pages work too
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  void release() {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{alignment_});
    data_ = nullptr;
    capacity_ = 0;
  }

  T* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t alignment_ = kAlignment;
};

}  // namespace wring
