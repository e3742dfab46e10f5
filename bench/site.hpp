// A path made ready to be measured: inspected, given a folder of its own or its existing files found, and
// left as it was found.
#pragma once

#include <string>

#include "bench/bench.hpp"
#include "bench/scratch.hpp"

namespace spark::bench {

class Site {
 public:
  // Looks at the path and removes what killed runs left there; makes nothing. Errors are the user's to mend:
  // NotFound, Invalid (no folder, or a name that fio can't take), Refused (a raw device), Denied. A path that
  // does not answer is no error: the record says why it is unusable.
  static Result<Site> inspect(const PathUnderTest& path, const StopFlag& stop);

  Site(Site&&) noexcept = default;
  Site& operator=(Site&&) = delete;
  ~Site();

  // Makes the folder with its marker, or looks for existing files; shows that direct I/O is possible. What
  // goes wrong makes the path unusable.
  void open(const Owner& owner, Bytes size, const StopFlag& stop);

  // Removes the folder. An error says what was left and why; the second call does nothing.
  Result<> close();

  PathRecord record;
  std::uint64_t device = 0;  // st_dev

  bool is_usable() const { return record.unusable.empty(); }
  bool is_writable() const { return record.read_only_reason.empty(); }

 private:
  explicit Site(const PathUnderTest& path);
  void take_answer(const json::object& answer);

  struct Scratch {  // the folder to remove; moves empty
    std::string folder;
    Scratch() = default;
    Scratch(Scratch&& other) noexcept : folder(std::exchange(other.folder, {})) {}
  } scratch_;
};

// NoSpace with the numbers if the files of `size` bytes would not fit on the writable sites' file systems, or
// would leave less than 5 % free. Sites that share a file system share its space.
Result<> check_space(const std::vector<Site>& sites, Bytes size);

}  // namespace spark::bench
