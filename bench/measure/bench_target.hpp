// A path made ready to be measured: inspected, given a folder of its own or its existing files found, and
// left as it was found.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/scratch.hpp"
#include "bench/measure/small_work.hpp"

namespace spark::bench {

// What a run lays out in each path that it may write in.
struct Layout {
  Bytes size = 0;       // of kLargeFiles files together
  SmallWork small;      // no sizes: no small files are needed
  std::string dataset;  // its folder; empty: unknown
  Bytes rate = 0;       // bytes per second at most; 0: no limit
};

class BenchTarget {
 public:
  // Looks at the path and removes what killed runs left there; makes nothing. Errors are the user's to mend:
  // NotFound, Invalid (no folder, or a name that fio can't take), Refused (a raw device), Denied. A path that
  // does not answer is no error: the record says why it is unusable.
  static Result<BenchTarget> inspect(const PathUnderTest& path, const SystemRoot& root, const StopFlag& stop);

  BenchTarget(BenchTarget&&) noexcept = default;
  BenchTarget& operator=(BenchTarget&&) = delete;
  ~BenchTarget();

  // Makes the folder with its marker and the small files in it, or looks for existing files; files of the
  // dataset are read where they are. Shows that direct I/O is possible. What goes wrong makes the path
  // unusable. The large files don't exist yet.
  void open(const Owner& owner, const Layout& layout, const StopFlag& stop);

  // Removes the folder. An error says what was left and why; the second call does nothing.
  Result<> close();

  // Of a local drive; remote ones have no sensor here.
  void look_at_heat(const SystemRoot& root);

  PathRecord record;
  std::optional<DriveTemperature> hottest;  // of all looks
  std::uint64_t device = 0;                 // st_dev
  std::vector<std::string> small_files;     // to read whole; each round reads `window` of them
  std::size_t window = 0;
  std::string copy_folder;  // of small files, for the staging copy; empty: there is none

  bool is_usable() const { return record.unusable.empty(); }
  bool is_writable() const { return record.read_only_reason.empty(); }
  const std::string& scratch() const { return scratch_.folder; }  // empty: none

 private:
  explicit BenchTarget(const PathUnderTest& path);
  void take_answer(const json::object& answer);
  void read_facts(const SystemRoot& root);
  void take_small_work(const SmallWork& work);
  void make_small_files_in(const Layout& layout, const StopFlag& stop);

  struct Scratch {  // the folder to remove; moves empty
    std::string folder;
    Scratch() = default;
    Scratch(Scratch&& other) noexcept : folder(std::exchange(other.folder, {})) {}
  } scratch_;
};

// NoSpace with the numbers if `size` bytes in each would not fit on the writable targets' file systems, or
// would leave less than 5 % free. Targets that share a file system share its space.
Result<> check_space(const std::vector<BenchTarget>& targets, Bytes size);

}  // namespace spark::bench
