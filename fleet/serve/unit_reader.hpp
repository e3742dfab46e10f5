// Reads units of a copy from the local drive with direct I/O, so that data for peers stays out of the page
// cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fleet/protocol/layout.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/raw_path.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::fleet {

struct UnitBody;

struct ListedFile {
  staging::RawPath path;
  Bytes size = 0;
  bool lost_attributes = false;  // see staging::Entry
  std::string content{};         // of a small file that is not read: it is known; empty means read it
};

// Why a unit could not be read.
struct UnitTrouble {
  std::uint64_t file = 0;  // its number in the list
  int error = 0;           // errno; 0: it is not the file that is listed
};
template <class T>
using UnitRead = tl::expected<T, UnitTrouble>;

class UnitReader {
 public:
  // `identities`: of the files, in their order, if others may change them; else empty. A file with another
  // one is not read, and nothing that was read of it is given away.
  UnitReader(staging::Tree tree, std::vector<ListedFile> files,
             std::vector<staging::SourceIdentity> identities = {});
  const Layout& layout() const { return layout_; }
  bool is_there() const;  // false: the copy was deleted

  // Reads into the buffer of kUnitBuffer bytes. A pack of files that nobody changes lacks those that can't be
  // read. Thread-safe.
  UnitRead<UnitBody> read_piece(std::uint64_t unit, const staging::IoBuffer& buffer) const;
  using SmallDigest = std::function<std::optional<staging::Digest>(std::uint64_t small)>;
  UnitRead<UnitBody> read_pack(std::uint64_t unit, const staging::IoBuffer& buffer,
                               const SmallDigest& digest_of) const;

 private:
  staging::Tree tree_;
  std::vector<ListedFile> files_;
  std::vector<staging::SourceIdentity> identities_;
  Layout layout_;

  UniqueFd open(const ListedFile& file) const;
  bool is_as_listed(std::uint64_t file, const UniqueFd& fd) const;
  UnitRead<void> read(std::uint64_t file, const UniqueFd& fd, Bytes offset, std::size_t bytes,
                      std::byte* into) const;
};

}  // namespace spark::fleet
