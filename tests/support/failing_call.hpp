// Makes the Nth system call of this process fail, whoever makes it: libc, SQLite or our own code.
#pragma once

#include <string>

namespace spark::test {

// From here on calls that touch files are counted, in all threads, and the `nth` (from 1; 0: none) fails with
// `error` instead of being made. For good, so in a child process of the test's only. Returns why that is not
// possible here; empty if it is.
std::string arm_failing_call(unsigned nth, int error);

// Calls counted so far.
unsigned calls_counted();

}  // namespace spark::test
