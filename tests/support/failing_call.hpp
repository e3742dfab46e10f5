// Makes the Nth system call of this process fail, in libc, SQLite or our own code.
#pragma once

#include <string>

namespace spark::test {

// From now on, calls that touch files are counted in all threads, and number `nth` (from 1; 0: none) returns
// `error` without being made. This can't be undone, so use it only in a child process of the test. Returns
// the reason if it is not possible here, otherwise an empty string.
std::string arm_failing_call(unsigned nth, int error);

// Calls counted so far.
unsigned calls_counted();

}  // namespace spark::test
