// Makes an allocation of another thread fail, in any code.
#pragma once

namespace spark::test {

// During its lifetime, allocations of all threads except its creator's are counted, and number `nth` (from 1;
// 0: none) throws std::bad_alloc. Only one at a time.
class FailingAllocation {
 public:
  // False under a sanitizer, which replaces all forms of new and delete.
  static bool is_possible();

  explicit FailingAllocation(unsigned nth);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  unsigned counted() const;
};

}  // namespace spark::test
