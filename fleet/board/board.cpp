#include "fleet/board/board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr std::uint64_t kMagic = 0x31647261'6f42666bU;
constexpr std::size_t kMembers = 64;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kDigestBytes = 16;
constexpr std::int64_t kOldSeconds = 60;
constexpr unsigned kMostTries = 100;
constexpr Bytes kMostBytes = 4 * kGiB;  // for 64 million units

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

bool is_recent(std::int64_t at, std::chrono::nanoseconds within = kSilent) {
  return now_ns() - at < within.count();
}

// A lock of the open file, so that it ends with the worker and can be looked at without taking it.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool lock(const UniqueFd& file) {
  struct flock wanted = whole_file();
  return ::fcntl(file.get(), F_OFD_SETLK, &wanted) == 0;
}

bool is_locked_elsewhere(const UniqueFd& file) {
  struct flock wanted = whole_file();
  return ::fcntl(file.get(), F_OFD_GETLK, &wanted) == 0 && wanted.l_type != F_UNLCK;
}

std::filesystem::path memory_folder(const std::filesystem::path& folder) {
  return "/dev/shm/spark-stage-" + staging::to_hex(staging::digest_of(folder.native()));
}

// Anyone may make folders there, so only one that belongs to this user alone is used.
std::filesystem::path fast_folder(const std::filesystem::path& folder, bool makes_it = false) {
  const auto memory = memory_folder(folder);
  struct stat info {};
  bool is_there = ::lstat(memory.c_str(), &info) == 0;
  // Another worker's Board::remove() may remove it again until a file is in it.
  while (makes_it && !is_there && (::mkdir(memory.c_str(), 0700) == 0 || errno == EEXIST))
    is_there = ::lstat(memory.c_str(), &info) == 0;
  const bool is_mine =
      is_there && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
  return is_mine ? memory : folder;
}

// A new and locked file. A server may still have the old one mapped, so that is unlinked but never truncated.
Result<UniqueFd> make_file(const std::filesystem::path& path) {
  const std::string doing = "making " + printable(path.native());
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno(errno, doing);
  if (!lock(file)) return fail(Errc::Unavailable, doing + ": another process stages the same set");
  ::unlink(path.c_str());
  file.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file || !lock(file)) return fail_errno(errno, doing);
  return file;
}

bool is_old(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && ::time(nullptr) - info.st_mtim.tv_sec > kOldSeconds;
}

bool is_held(const std::filesystem::path& path) {
  const UniqueFd board(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return board && is_locked_elsewhere(board);
}

// True if a worker of this host stages the set.
bool is_staged(const std::filesystem::path& folder, const std::string& set) {
  const std::string name = set + ".board";
  return is_held(fast_folder(folder) / name) || is_held(folder / name);
}

// Files of workers that were killed, in `folder` or in the memory folder. A board that is new may not be
// locked yet. The list of a running staging is old as well, so its board's lock counts; the age is read after
// the lock, because a worker may just have started again with the same set.
void remove_abandoned(const std::filesystem::path& in, const std::filesystem::path& folder) {
  for (const std::filesystem::path& path : list_folder(in)) {
    const std::filesystem::path kind = path.extension();
    const std::string name = path.filename().native();
    if (kind == ".board") {
      const UniqueFd board(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
      if (board && !is_locked_elsewhere(board) && is_old(path)) ::unlink(path.c_str());
    } else if (kind == ".entries" || kind == ".notes" || kind == ".new") {
      const std::string set = name.substr(0, name.find('.'));
      if (!is_staged(folder, set) && is_old(path)) ::unlink(path.c_str());
    }
  }
}

}  // namespace

// Written and read by the same program: a host has only one version of it.
struct Board::Header {
  struct Member {
    std::atomic<NodeId> node;  // 0: a free slot
    std::atomic<std::int64_t> seen_ns;
  };
  std::atomic<std::uint64_t> magic;  // written last
  BoardSize size;
  std::atomic<std::int64_t> beat_ns;
  std::atomic<bool> done;
  std::atomic<SetState::Reads> reads;
  std::array<Member, kMembers> members;
  std::array<char, kLongestText> data;
};

namespace {

// With all its space, so that no write to the mapped file fails.
Result<UniqueFd> make_whole(const std::filesystem::path& path, std::size_t bytes) {
  auto file = make_file(path);
  if (!file) return file;
  const int made = ::posix_fallocate(file->get(), 0, static_cast<off_t>(bytes));
  if (made == 0) return file;
  ::unlink(path.c_str());
  return fail_errno(made, "making " + printable(path.native()));
}

bool is_lack_of_space(const Error& error) {
  return error.number == ENOSPC || error.number == ENOMEM;
}

std::size_t bytes_of(const BoardSize& size, std::size_t header) {
  // State bytes, then a digest for each piece, then a flag and a digest for each small file.
  return header + size.units + size.pieces * kDigestBytes + size.small_files * (kDigestBytes + 1);
}

}  // namespace

std::filesystem::path Board::path_of(const std::filesystem::path& folder, const std::string& set) {
  const std::string name = set + ".board";
  const std::filesystem::path in_memory = fast_folder(folder) / name;
  return ::access(in_memory.c_str(), F_OK) == 0 ? in_memory : folder / name;
}

std::filesystem::path Board::entries_of(const std::filesystem::path& folder, const std::string& set) {
  return folder / (set + ".entries");
}

std::filesystem::path Board::notes_of(const std::filesystem::path& folder, const std::string& set) {
  return folder / (set + ".notes");
}

Result<std::unique_ptr<Board>> Board::create(const std::filesystem::path& folder, const std::string& set,
                                             const std::string& data, const BoardSize& size) {
  std::filesystem::path path = fast_folder(folder, true) / (set + ".board");
  const std::filesystem::path on_drive = folder / path.filename();
  remove_abandoned(folder, folder);
  if (path.parent_path() != folder) remove_abandoned(path.parent_path(), folder);
  const std::string shown = printable(path.native());
  const std::size_t bytes = bytes_of(size, sizeof(Header));
  if (bytes > kMostBytes || data.size() >= kLongestText)
    return fail(Errc::Unsupported, "making " + shown + ": the set is too large to be exchanged");
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  if (path != on_drive && is_held(on_drive))
    return fail(Errc::Unavailable, "making " + shown + ": another process stages the same set");
  auto file = make_whole(path, bytes);
  for (unsigned again = 0; !file && file.error().kind == Errc::NotFound && again < kMostTries; ++again) {
    fast_folder(folder, true);  // another worker has removed it
    file = make_whole(path, bytes);
  }
  // A container's memory folder may have 64 MiB, which is too little for 4 million small files.
  if (!file && is_lack_of_space(file.error()) && path != on_drive) {
    ::rmdir(path.parent_path().c_str());  // if it is empty
    path = on_drive;
    file = make_whole(path, bytes);
  }
  if (!file) return file.take_error();
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (mapped == MAP_FAILED) return fail_errno(errno, "mapping " + shown);
  std::unique_ptr<Board> board(new Board(std::move(*file), mapped, bytes, size, path));
  board->entries_ = entries_of(folder, set);
  board->notes_ = notes_of(folder, set);
  Header& header = board->header();
  header.size = size;
  std::memcpy(header.data.data(), data.c_str(), data.size() + 1);
  board->beat();
  // The list of a worker that was killed may have the same name and counts, but not the same attributes.
  ::unlink(board->entries_.c_str());
  header.magic = kMagic;
  return board;
}

Result<std::unique_ptr<Board>> Board::open(const std::filesystem::path& folder, const std::string& set) {
  const std::filesystem::path path = path_of(folder, set);
  const std::string shown = printable(path.native());
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return fail_errno(errno, "opening " + shown);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail_errno(errno, "opening " + shown);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes < sizeof(Header)) return fail(Errc::NotFound, "opening " + shown + ": it is being made");
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return fail_errno(errno, "mapping " + shown);
  const Header& header = *static_cast<Header*>(mapped);
  const BoardSize size = header.magic == kMagic ? header.size : BoardSize{};
  std::unique_ptr<Board> board(new Board(std::move(file), mapped, bytes, size, path));
  if (header.magic != kMagic || bytes_of(size, sizeof(Header)) != bytes)
    return fail(Errc::NotFound, "opening " + shown + ": it is being made");
  return board;
}

Board::~Board() {
  ::munmap(mapped_, bytes_);
}

Board::Header& Board::header() const {
  return *static_cast<Header*>(mapped_);
}

std::atomic<std::uint8_t>& Board::state(std::uint64_t unit) const {
  static_assert(sizeof(std::atomic<std::uint8_t>) == 1 && std::atomic<std::uint8_t>::is_always_lock_free);
  auto* states = reinterpret_cast<std::atomic<std::uint8_t>*>(static_cast<char*>(mapped_) + sizeof(Header));
  return states[unit];
}

std::uint8_t* Board::digest_at(std::uint64_t index) const {
  return static_cast<std::uint8_t*>(mapped_) + sizeof(Header) + size_.units + index * kDigestBytes;
}

std::string Board::data() const {
  return header().data.data();
}

void Board::beat() {
  header().beat_ns = now_ns();
}

void Board::set_reads(SetState::Reads reads) {
  header().reads = reads;
}

void Board::set_unit(std::uint64_t unit, UnitState to) {
  state(unit) = static_cast<std::uint8_t>(to);
}

void Board::set_digest(std::uint64_t piece, const staging::Digest& digest) {
  std::memcpy(digest_at(piece), &digest, kDigestBytes);
}

void Board::set_small_digest(std::uint64_t small_file, const staging::Digest& digest) {
  std::memcpy(digest_at(size_.pieces + small_file), &digest, kDigestBytes);
  std::atomic_ref<std::uint8_t>(*(digest_at(size_.pieces + size_.small_files) + small_file)) = 1;
}

void Board::set_done() {
  header().done = true;
}

std::vector<NodeId> Board::members() const {
  std::vector<NodeId> lately;
  for (const Header::Member& member : header().members) {
    const NodeId node = member.node;
    if (node != 0 && is_recent(member.seen_ns)) lately.push_back(node);
  }
  return lately;
}

void Board::remove() {
  for (const auto& file : {path_, entries_, notes_}) ::unlink(file.c_str());
  if (path_.parent_path() != entries_.parent_path()) ::rmdir(path_.parent_path().c_str());  // if it is empty
}

bool Board::is_alive() const {
  return is_recent(header().beat_ns, kNoBeat) && is_locked_elsewhere(file_);
}

bool Board::is_done() const {
  return header().done;
}

SetState::Reads Board::reads() const {
  return header().reads;
}

UnitState Board::unit(std::uint64_t unit) const {
  return static_cast<UnitState>(state(unit).load() & 3U);
}

staging::Digest Board::digest(std::uint64_t piece) const {
  staging::Digest digest;
  std::memcpy(&digest, digest_at(piece), kDigestBytes);
  return digest;
}

std::optional<staging::Digest> Board::small_digest(std::uint64_t small_file) const {
  const std::atomic_ref<std::uint8_t> flag(*(digest_at(size_.pieces + size_.small_files) + small_file));
  if (flag == 0) return std::nullopt;
  return digest(size_.pieces + small_file);
}

void Board::note_member(NodeId node) {
  Header::Member* place = nullptr;
  for (Header::Member& member : header().members) {
    const NodeId there = member.node;
    if (there == node) {
      member.seen_ns = now_ns();
      return;
    }
    if (place == nullptr && (there == 0 || !is_recent(member.seen_ns))) place = &member;
  }
  if (place == nullptr) return;  // more hosts than a fleet can have
  place->seen_ns = now_ns();
  place->node = node;
}

}  // namespace spark::fleet
