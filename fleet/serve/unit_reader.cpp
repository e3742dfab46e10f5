#include "fleet/serve/unit_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "fleet/serve/offer.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/times.hpp"

namespace spark::fleet {
namespace {

// Offset of the space for one file's content, after the table and the packed content, aligned for direct I/O.
constexpr std::size_t kScratch = kUnitBuffer - kPackedFile - staging::kLargestAlignment;

bool is_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV;
}

const std::byte* as_bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

}  // namespace

UnitReader::UnitReader(staging::Tree tree, std::vector<ListedFile> files,
                       std::vector<staging::SourceIdentity> identities)
    : tree_(std::move(tree)), files_(std::move(files)), identities_(std::move(identities)) {
  for (const ListedFile& file : files_) layout_.add(file.size);
  layout_.finish();
}

bool UnitReader::is_there() const {
  struct stat info {};
  return ::fstat(tree_.folder.get(), &info) == 0 && info.st_nlink > 0;
}

UniqueFd UnitReader::open(const ListedFile& file) const {
  return staging::open_beneath(tree_, file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

// Checked after the content was read.
bool UnitReader::is_as_listed(std::uint64_t file, const UniqueFd& fd) const {
  if (identities_.empty()) return true;
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return false;
  const staging::SourceIdentity now{static_cast<Bytes>(info.st_size), staging::nanoseconds(info.st_mtim),
                                    staging::nanoseconds(info.st_ctim), info.st_ino};
  return now == identities_[file];
}

// `fd` was opened just now. Of a file that has changed, its drive's errors mean nothing.
UnitRead<void> UnitReader::read(std::uint64_t file, const UniqueFd& fd, Bytes offset, std::size_t bytes,
                                std::byte* into) const {
  const auto trouble = [file](int error) { return tl::unexpected(UnitTrouble{file, error}); };
  if (!fd) return trouble(is_gone(errno) ? 0 : errno);
  staging::ReadOutcome read;
  if (bytes > 0) {
    const staging::IoMode mode = staging::make_direct(fd.get());
    read = staging::read_at(fd.get(), mode, into, bytes, offset);
    if (!mode.direct) staging::drop_pages(fd.get(), offset, bytes);
  }
  if (!is_as_listed(file, fd)) return trouble(0);
  if (read.error != 0 || read.bytes != bytes) return trouble(read.error);
  return {};
}

UnitRead<UnitBody> UnitReader::read_piece(std::uint64_t unit, const staging::IoBuffer& buffer) const {
  const Piece piece = layout_.piece(unit);
  const ListedFile& file = files_[piece.file];
  const std::size_t bytes = staging::piece_bytes(file.size, piece.piece);
  const UniqueFd fd = open(file);
  if (auto done = read(piece.file, fd, piece.piece * staging::kHashPiece, bytes, buffer.data()); !done)
    return tl::unexpected(done.error());
  return UnitBody{{buffer.data(), bytes},
                  {},
                  {},
                  !file.lost_attributes && !staging::has_kept_attributes(fd.get()).value_or(true)};
}

UnitRead<UnitBody> UnitReader::read_pack(std::uint64_t unit, const staging::IoBuffer& buffer,
                                         const SmallDigest& digest_of) const {
  static_assert(kPackBytes + kPackFiles * kTableEntry <= kScratch,
                "a pack and its table lie before the scratch");
  const Pack& pack = layout_.pack(unit);
  std::byte* const scratch = buffer.data() + kScratch;
  std::byte* content = buffer.data() + pack.count * kTableEntry;
  for (std::uint64_t i = 0; i < pack.count; ++i) {
    std::byte* row = buffer.data() + i * kTableEntry;
    std::memset(row, 0, kTableEntry);
    const std::uint64_t index = layout_.small(pack.first + i);
    const ListedFile& file = files_[index];
    const auto digest = digest_of(pack.first + i);
    // Attributes and ACLs are not transferred, so the peer must get such a file from its source.
    if (!digest || file.lost_attributes) continue;
    if (file.content.empty()) {
      const UniqueFd fd = open(file);
      if (auto done = read(index, fd, 0, file.size, scratch); !done && !identities_.empty())
        return tl::unexpected(done.error());
      else if (!done || staging::has_kept_attributes(fd.get()).value_or(true))
        continue;
    }
    row[0] = std::byte{1};
    put_digest(row + 1, *digest);
    std::memcpy(content, file.content.empty() ? scratch : as_bytes(file.content), file.size);
    content += file.size;
  }
  return UnitBody{{buffer.data(), static_cast<std::size_t>(content - buffer.data())}, {}, {}, true};
}

}  // namespace spark::fleet
