// A path prepared for measurement: inspected, then given its own folder or a list of its existing files, and
// finally restored.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "bench/files/file_reader.hpp"
#include "bench/files/scratch.hpp"
#include "bench/measure/bench.hpp"
#include "bench/measure/small_work.hpp"

namespace spark::bench {

// The files that a run lays out in each writable path.
struct Layout {
  Bytes size = 0;       // of kLargeFiles files together
  SmallWork small;      // without sizes: no small files are needed
  std::string dataset;  // the dataset's folder; empty: unknown
  Bytes rate = 0;       // limit in bytes per second; 0: no limit
};

class BenchTarget {
 public:
  // Inspects the path and removes leftovers of killed runs; creates nothing. Errors are for the user to fix:
  // NotFound, Invalid (no folder, or a name that fio can't take), Refused (a raw device), Denied. An
  // unresponsive path is not an error: the record gives the reason why it is unusable.
  static Result<BenchTarget> inspect(const PathUnderTest& path, const SystemRoot& root, const StopFlag& stop);

  BenchTarget(BenchTarget&&) noexcept = default;
  BenchTarget& operator=(BenchTarget&&) = delete;
  ~BenchTarget();

  // Creates the folder with its marker and the small files, or looks for existing files. Files of the dataset
  // are read in place. Checks that direct I/O works. Any failure marks the path as unusable. The large files
  // don't exist yet.
  void open(const Owner& owner, const Layout& layout, const StopFlag& stop);

  // Removes the folder. The error names the remaining files and the reason. A second call does nothing.
  Result<> close();

  // For a local drive; a remote one has no sensor on this host.
  void look_at_heat(const SystemRoot& root);

  PathRecord record;
  std::optional<DriveTemperature> hottest;  // of all samples
  std::uint64_t device = 0;                 // st_dev
  std::string space;                        // the same for all folders of one file system
  std::vector<std::string> small_files;     // to read whole, in passes of `window`
  std::size_t window = 0;
  std::size_t files_read = 0;  // position in small_files; wraps around at the end
  bool may_be_cached = false;  // a dataset on NFS: some of its files were in the page cache before the run
  CopySample copy_sample;      // of small files

  Delegations delegations() const;  // for reading the small files

  bool is_usable() const { return record.unusable.empty(); }
  bool is_writable() const { return record.read_only_reason.empty(); }
  const std::string& scratch() const { return scratch_.folder; }  // empty if there is none

 private:
  explicit BenchTarget(const PathUnderTest& path);
  void read_facts(const SystemRoot& root);
  void take_small_work(const SmallWork& work);
  void make_small_files_in(const Layout& layout, const StopFlag& stop);

  struct Scratch {  // the folder to remove; empty after a move
    std::string folder;
    Scratch() = default;
    Scratch(Scratch&& other) noexcept : folder(std::exchange(other.folder, {})) {}
  } scratch_;
};

// NoSpace with the numbers if `size` bytes in each writable target would not fit on its file system, or would
// leave less than 5 % free. Targets on the same file system share its space.
Result<> check_space(const std::vector<BenchTarget>& targets, Bytes size);

}  // namespace spark::bench
