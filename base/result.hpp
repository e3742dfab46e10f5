// Result<T>: a value or an Error that is a sentence. Ignoring one does not compile.
#pragma once

#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace spark {

// Each kind means one action of the user's and one exit status (exit_status below).
enum class Errc {
  Failed,       // it was tried and went wrong                            1
  Invalid,      // the request or the config is wrong                     2
  NotFound,     // no such volume, dataset, subsystem, file               3
  Unavailable,  // daemon, target or volume can't be reached now          4
  NoSpace,      // would not fit, or did not                              5
  Mismatch,     // data differs from its manifest or digests              6
  Refused,      // possible but unsafe; a person has to decide            7
  Denied,       // the caller may not do this                             1
  Unsupported,  // this kernel, file system or library can't              1
  TimedOut,     // a deadline passed                                    124
  Cancelled,    // interrupted by the user                              130
};

// "operation: reason - next step". `what` has the operation, its object and the reason; `hint` the next step.
struct Error {
  Errc kind = Errc::Failed;
  std::string what;
  std::string hint;
  int number = 0;  // errno of the system call that failed, for code that decides by it; 0: none. Not in JSON.
  bool is_away = false;       // the folder to read is not there: it is missing, empty, or another file system
  bool is_of_source = false;  // of a copy: its source could not be read. Not in JSON.

  // The whole sentence for a person.
  std::string message() const;
};

// A value, or why there is none. tl::expected with [[nodiscard]] on the type.
template <class T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> other) : tl::expected<T, Error>(std::move(other)) {}

  // Passes the error of one result on as another's: `return opened.take_error();`
  tl::unexpected<Error> take_error() { return tl::unexpected<Error>(std::move(this->error())); }
  tl::unexpected<Error> take_error() const { return tl::unexpected<Error>(this->error()); }
};

// Without the value.
template <class T>
Result<> success_of(const Result<T>& result) {
  return result ? Result<>() : Result<>(result.take_error());
}

// The effect of an idempotent change. A second call returns AlreadyThere and is no error.
enum class Change { AlreadyThere, Done };

tl::unexpected<Error> fail(Errc kind, std::string what, std::string hint = {});
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// For a failed system call: "what: strerror(number)". ENOSPC becomes NoSpace, ENOENT NotFound, EACCES and
// EPERM Denied, ETIMEDOUT TimedOut, EINTR Cancelled.
tl::unexpected<Error> fail_errno(int number, std::string what, std::string hint = {});

// Passes an error on, with the operation in front: "mounting /mnt/x: …".
tl::unexpected<Error> fail_with(Error error, const std::string& doing);

// The exit status of a program for an error of this kind (docs/api.md).
int exit_status(Errc kind);

// The kind's name as it stands in JSON ("not_found"), and back; an unknown name is Failed.
const char* to_string(Errc kind);
Errc errc_from_string(std::string_view name);

}  // namespace spark
