// A dataset's source: its files, and what was in them at each time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::histories::copies {

using Content = std::shared_ptr<const std::string>;

// Bytes that no other file has, of this size.
Content new_content(std::uint64_t number, Bytes size);

struct SourceFile {
  Content content;
  std::string note;  // the value of its attribute user.note; empty: it has none
  bool operator==(const SourceFile&) const = default;
};

class Source {
 public:
  struct Place {
    std::string name, disk;           // of the dataset; on which disk it is
    std::filesystem::path real;       // its folder on that disk
    std::filesystem::path path;       // as configured, that is, below the mount point
    std::int64_t granularity_ns = 1;  // of its file system's times
    bool is_volume = false;           // else any folder, for the product
  };

  explicit Source(Place place) : place_(std::move(place)) {}

  const Place& place() const { return place_; }
  const std::string& name() const { return place_.name; }
  // Changes whenever anything does that a reader of the files can see.
  std::uint64_t version() const { return version_; }
  std::vector<std::string> files() const;  // now

  // All at `at`, by the clock of the file system's host.
  void add(const std::string& path, SourceFile file, SteadyTime at, WallTime wall);
  void remove(const std::string& path, SteadyTime at, WallTime wall);
  void rewrite(const std::string& path, Content content, bool keeps_mtime, SteadyTime at, WallTime wall);
  void replace(const std::string& path, Content content, SteadyTime at, WallTime wall);  // a new file
  void touch(const std::string& path, WallTime wall);
  void change_mode(const std::string& path, unsigned mode, WallTime wall);
  // Empty: it is removed.
  void change_note(const std::string& path, const std::string& value, SteadyTime at, WallTime wall);
  // A file that came and went: nothing of it is left.
  void pass_through(WallTime wall);

  const SourceFile& now(const std::string& path) const { return *timeline_.at(path).back().file; }
  // What the file was at times in that period.
  std::vector<SourceFile> between(const std::string& path, SteadyTime from, SteadyTime to) const;
  bool was_absent(const std::string& path, SteadyTime from, SteadyTime to) const;
  std::vector<SourceFile> ever(const std::string& path) const;
  std::set<std::string> paths_ever() const;

 private:
  struct Span {
    SteadyTime since;
    std::optional<SourceFile> file;
  };

  void note(const std::string& path, std::optional<SourceFile> file, SteadyTime at);
  void write(const std::string& path, const SourceFile& file) const;
  std::int64_t stamp(WallTime wall);
  void date(const std::filesystem::path& file, std::int64_t mtime_ns, std::int64_t ctime_ns) const;
  void date_folder(const std::string& path, std::int64_t ns) const;

  Place place_;
  std::uint64_t version_ = 0;
  std::int64_t last_ns_ = 0;
  std::map<std::string, std::vector<Span>> timeline_;
};

}  // namespace spark::histories::copies
