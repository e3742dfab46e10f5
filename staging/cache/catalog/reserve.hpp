// Space and inodes for the changes that free some, on a drive that is full: a folder .reserve beside the
// catalog and one in the cache, of 1 MiB and a few files. Without one everything goes on.
#pragma once

#include <filesystem>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::staging {

// While there is much space.
void make_reserve(const std::filesystem::path& folder);

// On the drive of the folder: no files can be made there, or only a few.
bool lacks_inodes(const std::filesystem::path& folder);

// SQLite makes its index with a byte in each 4 KiB, and maps it: where blocks are smaller, a store that finds
// no further block ends the process (SIGBUS). Whether that is to be expected.
bool lacks_blocks_of_index(const std::filesystem::path& index);

class Reserve {
 public:
  explicit Reserve(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}
  Reserve(Reserve&&) = default;
  // Reserves again what was freed, as far as there is space. The catalog should be closed by then.
  ~Reserve();

  // Returns the result of `work`; if a drive has refused a write of it, that of a second call, with the
  // reserve freed. It is not freed before, as whatever fills the drive would take it too; nor if there is no
  // room for data.
  template <class Work>
  std::invoke_result_t<Work> with(const Work& work) {
    auto done = work();
    const auto is_full = [&] { return !done && done.error().kind == Errc::NoSpace; };
    if (is_full() && done.error().number != 0 && give_up()) done = work();
    if (is_full()) name_lack(done.error());
    return done;
  }
  Bytes lent() const;  // given up at this moment; not for data

 private:
  std::vector<std::filesystem::path> folders_, given_up_;

  bool give_up();
  void name_lack(Error& error) const;
};

}  // namespace spark::staging
