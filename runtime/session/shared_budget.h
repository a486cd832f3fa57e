//===- shared_budget.h - Bytes that several engines share -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SESSION_SHARED_BUDGET_H
#define SHEAF_RUNTIME_SESSION_SHARED_BUDGET_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace sheaf::rt {

/// Bytes that the sessions of several engines should not exceed together. Engines look at it when
/// they begin instances and give memory back; what no session ever exceeds is its own memoryLimit.
/// For any threads.
class SharedBudget {
public:
  explicit SharedBudget(uint64_t limit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

  /// What one of those who share it uses; nothing once it is gone. Of one thread.
  class Share {
  public:
    explicit Share(std::shared_ptr<SharedBudget> of) : budget_(std::move(of)) {}
    ~Share() { tell(0); }
    Share(const Share &) = delete;
    Share &operator=(const Share &) = delete;

    void tell(uint64_t used) {
      if (budget_)
        budget_->used_.fetch_add(used - std::exchange(used_, used), std::memory_order_relaxed);
    }
    /// Whether all use more than this part of the limit.
    bool isShort(double part) const {
      return budget_ &&
             static_cast<double>(budget_->used()) > part * static_cast<double>(budget_->limit());
    }

  private:
    std::shared_ptr<SharedBudget> budget_; ///< null: there is none
    uint64_t used_ = 0;
  };

private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_ = 0;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SESSION_SHARED_BUDGET_H
