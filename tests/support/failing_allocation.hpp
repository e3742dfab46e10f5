// Makes an allocation of another thread fail, whoever makes it.
#pragma once

namespace spark::test {

// While it lasts, allocations of all threads but its maker's are counted, and the `nth` (from 1; 0: none)
// throws std::bad_alloc. One at a time.
class FailingAllocation {
 public:
  // Not under a sanitizer, which has all forms of new and delete to itself.
  static bool is_possible();

  explicit FailingAllocation(unsigned nth);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  unsigned counted() const;
};

}  // namespace spark::test
