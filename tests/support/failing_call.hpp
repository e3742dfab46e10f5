// Makes the Nth system call of this process fail, in libc, SQLite or our own code.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace spark::test {

// From now on, calls that touch files are counted in all threads, and number `nth` (from 1; 0: none) returns
// `error` without being made. This can't be undone, so use it only in a child process of the test. Returns
// the reason if it is not possible here, otherwise an empty string.
std::string arm_failing_call(unsigned nth, int error);

// Calls counted so far.
unsigned calls_counted();

// A system call that is about to be made.
struct FileCall {
  long number;
  const long* arguments;  // six
};
// What it returns instead of being made, as the kernel does (-EIO); none: it is made.
using Decide = std::optional<long> (*)(const FileCall& call);

// From now on, `decide` is asked before each of these calls, in the thread that makes it, as in a signal
// handler. Otherwise as arm_failing_call, which must not be used as well.
std::string intercept_calls(std::span<const int> numbers, Decide decide);
// For `decide`: makes a call without being asked again.
long call_now(long number, long first = 0, long second = 0, long third = 0, long fourth = 0, long fifth = 0);

}  // namespace spark::test
