// The first error of a run that goes on after it. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "base/result.hpp"

namespace spark::staging {

class FirstError {
 public:
  void add(Error error) {
    const std::scoped_lock lock(mutex_);
    if (!first_) first_ = std::move(error);
  }
  Result<> check() const {
    const std::scoped_lock lock(mutex_);
    return first_ ? Result<>(fail(*first_)) : Result<>();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

}  // namespace spark::staging
