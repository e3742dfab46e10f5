#include "staging/view/fuse/fuse_view.hpp"

#include <dirent.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <tuple>

#include "base/text.hpp"

namespace spark::staging {
namespace {

// Newer than Debian 12's header: Linux 6.9 (protocol 7.40), include/uapi/linux/fuse.h.
constexpr std::uint32_t kHasResend = 1U << 7U;        // in flags2: FUSE_HAS_RESEND, 1 << 39
constexpr std::int32_t kNotifyResend = 7;             // FUSE_NOTIFY_RESEND
constexpr std::uint32_t kPassthrough = 1U << 5U;      // in flags2: FUSE_PASSTHROUGH, 1 << 37
constexpr std::uint32_t kOpenPassthrough = 1U << 7U;  // FOPEN_PASSTHROUGH
// max_stack_depth, after flags2. An overlayfs can lie on the view, and the copy can't lie on one.
constexpr std::size_t kStackDepthAt = offsetof(fuse_init_out, flags2) + sizeof fuse_init_out::flags2;
constexpr std::uint32_t kStackDepth = 1;
struct OpenOut {  // fuse_open_out
  std::uint64_t handle;
  std::uint32_t flags, backing;
};

constexpr std::uint32_t kOldestMinor = 31;  // Linux 5.4
constexpr std::uint64_t kDay = 86400;       // seconds: nothing changes
constexpr std::uint32_t kBlock = 4096;
// The default of 12 would make a read of what is here wait behind reads that wait.
constexpr std::uint16_t kManyInBackground = 65535;

constexpr std::chrono::milliseconds kBetweenInterrupts{1};
constexpr std::size_t kAskedAgain = 256;  // reads at a time: the copy remembers 1,024

// What a request begins with: the kernel's structure, shorter in older protocols.
template <class Arguments>
Arguments arguments_of(std::span<const std::byte> bytes) {
  Arguments arguments{};
  std::memcpy(&arguments, bytes.data(), std::min(bytes.size(), sizeof arguments));
  return arguments;
}

template <class Out>
std::span<const std::byte> bytes_of(const Out& out) {
  return std::as_bytes(std::span(&out, 1));
}

std::uint64_t id_of(NodeNumber node) {
  return std::uint64_t{node} + FUSE_ROOT_ID;
}

std::uint32_t type_of(EntryType type) {
  return type == EntryType::Folder ? S_IFDIR : type == EntryType::Symlink ? S_IFLNK : S_IFREG;
}

struct Time {
  std::uint64_t seconds;
  std::uint32_t nanoseconds;
};
Time time_of(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t rest = (nanoseconds % kSecond + kSecond) % kSecond;
  return {static_cast<std::uint64_t>((nanoseconds - rest) / kSecond), static_cast<std::uint32_t>(rest)};
}

fuse_attr attributes_of(const ViewTree& tree, NodeNumber number) {
  const ViewNode& node = tree.node(number);
  const Entry& entry = node.entry;
  const Time written = time_of(entry.mtime_ns), changed = time_of(entry.ctime_ns);
  fuse_attr out{};
  out.ino = id_of(number);
  out.size = entry.type == EntryType::Symlink ? entry.target.view().size() : entry.size;
  out.blocks = (entry.allocated + 511) / 512;
  out.atime = out.mtime = written.seconds;
  out.atimensec = out.mtimensec = written.nanoseconds;
  out.ctime = changed.seconds;
  out.ctimensec = changed.nanoseconds;
  out.mode = type_of(entry.type) | (entry.mode & 07777U);
  out.nlink = node.links;
  out.uid = entry.uid;
  out.gid = entry.gid;
  out.blksize = kBlock;
  return out;
}

fuse_entry_out entry_of(const ViewTree& tree, NodeNumber number) {
  fuse_entry_out out{};
  out.nodeid = id_of(number);
  out.entry_valid = out.attr_valid = kDay;
  out.attr = attributes_of(tree, number);
  return out;
}

FuseMessage message(std::uint64_t id, int code, std::span<const std::byte> bytes) {
  const fuse_out_header head{static_cast<std::uint32_t>(sizeof(fuse_out_header) + bytes.size()), code, id};
  FuseMessage made{{}, bytes};
  static_assert(sizeof head == std::tuple_size_v<decltype(made.head)>);
  std::memcpy(made.head.data(), &head, sizeof head);
  return made;
}

}  // namespace

struct FuseView::Request {
  fuse_in_header head;
  std::span<const std::byte> arguments;
};

void FuseView::send(std::uint64_t id, int error, std::span<const std::byte> bytes) const {
  send_(message(id, -error, bytes));
}

void FuseView::answer(std::span<const std::byte> bytes, const IoBuffer& buffer) {
  if (bytes.size() < sizeof(fuse_in_header)) return;  // the kernel sends whole requests
  const Request request{arguments_of<fuse_in_header>(bytes), bytes.subspan(sizeof(fuse_in_header))};
  const std::uint64_t node = request.head.nodeid - FUSE_ROOT_ID;
  switch (request.head.opcode) {
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
      return;
    case FUSE_INTERRUPT:
      return interrupt(request);
    case FUSE_INIT:
      return begin(request);
    case FUSE_STATFS:
      return show_space(request);
    default:
      if (node >= tree_.size()) return send(request.head.unique, ESTALE);
      act(request, static_cast<NodeNumber>(node), buffer);
  }
}

// The read may be in another thread's hands, and wait later: then EAGAIN makes the kernel send the interrupt
// again. Else a killed reader would not end before its piece comes. Once the read is answered, the kernel
// ignores this.
void FuseView::interrupt(const Request& request) {
  if (waiting_.interrupt(arguments_of<fuse_interrupt_in>(request.arguments).unique)) return map_.wake();
  std::this_thread::sleep_for(kBetweenInterrupts);
  send(request.head.unique, EAGAIN);
}

// ENOSYS: the kernel does without, and does not ask again. It answers itself what would change a file (the
// mount is read-only), and lists folders by READDIRPLUS alone.
void FuseView::act(const Request& request, NodeNumber node, const IoBuffer& buffer) {
  switch (request.head.opcode) {
    case FUSE_LOOKUP:
      return look_up(request, node);
    case FUSE_GETATTR:
      return show(request, node);
    case FUSE_READLINK:
      if (tree_.node(node).entry.type != EntryType::Symlink) return send(request.head.unique, EINVAL);
      return send(request.head.unique, 0, std::as_bytes(std::span(tree_.node(node).entry.target.view())));
    case FUSE_READ:
      return read(request, node, buffer);
    case FUSE_READDIRPLUS:
      return list(request, node, buffer);
    case FUSE_OPEN:
      return open(request, node);
    case FUSE_RELEASE:
      send(request.head.unique, 0);
      if (is_content(tree_.node(node).entry)) open_files_.close(node);
      return;
    default:
      return send(request.head.unique, ENOSYS);
  }
}

void FuseView::begin(const Request& request) {
  const auto asked = arguments_of<fuse_init_in>(request.arguments);
  fuse_init_out out{};
  out.major = FUSE_KERNEL_VERSION;
  out.minor = std::min<std::uint32_t>(asked.minor, FUSE_KERNEL_MINOR_VERSION);
  if (asked.major < FUSE_KERNEL_VERSION || (asked.major == FUSE_KERNEL_VERSION && asked.minor < kOldestMinor))
    return send(request.head.unique, EPROTO);
  constexpr std::uint32_t kWanted =
      FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_DO_READDIRPLUS | FUSE_CACHE_SYMLINKS;
  out.flags = asked.flags & kWanted;
  out.max_readahead = asked.max_readahead;
  out.max_background = out.congestion_threshold = kManyInBackground;
  out.max_write = kBlock;
  out.time_gran = 1;
  out.max_pages = kMostRead / kBlock;
  const std::uint32_t more = (asked.flags & FUSE_INIT_EXT) != 0 ? asked.flags2 : 0;
  can_resend_ = (more & kHasResend) != 0;
  answers_opens_ = (more & kPassthrough) != 0;
  if (answers_opens_) {
    out.flags |= FUSE_INIT_EXT;
    out.flags2 = kPassthrough;
    std::memcpy(reinterpret_cast<std::byte*>(&out) + kStackDepthAt, &kStackDepth, sizeof kStackDepth);
  }
  open_files_.forget();
  send(request.head.unique, 0, bytes_of(out));
}

void FuseView::look_up(const Request& request, NodeNumber folder) const {
  std::string_view name(reinterpret_cast<const char*>(request.arguments.data()), request.arguments.size());
  name = name.substr(0, name.find('\0'));
  const auto child = tree_.child(folder, name);
  fuse_entry_out out{};
  out.entry_valid = kDay;  // that there is none
  if (child) out = entry_of(tree_, tree_.node(*child).file);
  send(request.head.unique, 0, bytes_of(out));
}

void FuseView::show(const Request& request, NodeNumber node) const {
  fuse_attr_out out{};
  out.attr_valid = kDay;
  out.attr = attributes_of(tree_, node);
  send(request.head.unique, 0, bytes_of(out));
}

// The names ".", "..", then the children.
void FuseView::list(const Request& request, NodeNumber folder, const IoBuffer& buffer) const {
  const auto asked = arguments_of<fuse_read_in>(request.arguments);
  const auto children = tree_.children(folder);
  const std::size_t most = std::min<std::size_t>(asked.size, kMostRead);
  constexpr std::size_t kBefore = sizeof(fuse_entry_out);
  std::size_t used = 0;
  for (std::uint64_t at = asked.offset; at < children.size() + 2; ++at) {
    const NodeNumber number = at == 0 ? folder : at == 1 ? tree_.node(folder).folder : children[at - 2];
    const std::string_view name = at == 0   ? "."
                                  : at == 1 ? ".."
                                            : name_of(tree_.node(number).entry.path.view());
    const NodeNumber node = tree_.node(number).file;
    const std::size_t bytes = FUSE_REC_ALIGN(kBefore + FUSE_NAME_OFFSET + name.size());
    if (used + bytes > most) break;
    std::byte* to = buffer.data() + used;
    std::memset(to, 0, bytes);
    if (at >= 2) {
      const fuse_entry_out entry = entry_of(tree_, node);
      std::memcpy(to, &entry, sizeof entry);
    }
    const fuse_dirent head{id_of(node), at + 1, static_cast<std::uint32_t>(name.size()),
                           type_of(tree_.node(node).entry.type) >> 12U};
    std::memcpy(to + kBefore, &head, FUSE_NAME_OFFSET);
    std::memcpy(to + kBefore + FUSE_NAME_OFFSET, name.data(), name.size());
    used += bytes;
  }
  send(request.head.unique, 0, std::span<const std::byte>(buffer.data(), used));
}

void FuseView::read(const Request& request, NodeNumber file, const IoBuffer& buffer) {
  const auto asked = arguments_of<fuse_read_in>(request.arguments);
  if (!is_content(tree_.node(file).entry)) return send(request.head.unique, EINVAL);
  if (asked.size > kMostRead) return send(request.head.unique, EIO);
  read_or_wait({request.head.unique, {file, asked.offset, asked.size}, static_cast<pid_t>(request.head.pid)},
               buffer);
}

void FuseView::read_or_wait(const WaitingRead& read, const IoBuffer& buffer) {
  const ViewRead got = reader_.read(read.range, buffer);
  if (got.outcome == ViewRead::Outcome::Here) return send(read.id, 0, got.bytes);
  if (got.outcome == ViewRead::Outcome::Failed) return send(read.id, EIO);
  waiting_.add(read);
  reader_.want(read.range, map_);
  map_.wake();  // the piece may have come before the read was in the list
}

void FuseView::settle(const IoBuffer& buffer, bool looks_closer) {
  std::set<pid_t> killed = looks_closer ? waiting_.interrupted() : std::set<pid_t>{};
  std::erase_if(killed, [this](pid_t thread) { return !is_being_killed_(thread); });
  const auto over = waiting_.take_if([&](const WaitingRead& read) {
    return reader_.look(read.range) != ViewRead::Outcome::Missing ||
           (read.is_interrupted && killed.contains(read.thread));
  });
  if (looks_closer)  // the copy forgets the oldest of too many
    for (const ViewRange& range : waiting_.some(kAskedAgain)) reader_.want(range, map_);
  for (const WaitingRead& read : over) {
    if (reader_.look(read.range) != ViewRead::Outcome::Missing) {
      read_or_wait(read, buffer);
    } else {
      send(read.id, EINTR);
    }
  }
}

void FuseView::open(const Request& request, NodeNumber file) {
  static_assert(sizeof(OpenOut) == sizeof(fuse_open_out));
  if (!answers_opens_) return send(request.head.unique, ENOSYS);
  if (!is_content(tree_.node(file).entry)) return send(request.head.unique, EINVAL);
  const std::uint32_t backing = open_files_.open(file);
  const std::uint32_t kind = backing != 0 ? kOpenPassthrough : FOPEN_KEEP_CACHE;
  const OpenOut out{0, kind | FOPEN_NOFLUSH, backing};  // a close does not wait for this process
  send(request.head.unique, 0, bytes_of(out));
}

void FuseView::show_space(const Request& request) const {
  fuse_statfs_out out{};
  out.st.blocks = (tree_.bytes() + kBlock - 1) / kBlock;
  out.st.files = tree_.size();
  out.st.bsize = out.st.frsize = kBlock;
  out.st.namelen = NAME_MAX;
  send(request.head.unique, 0, bytes_of(out));
}

FuseMessage resend_notice() {
  return message(0, kNotifyResend, {});
}

void send_drop_notice(NodeNumber node, const FuseView::Send& send) {
  fuse_notify_inval_inode_out out{};
  out.ino = id_of(node);  // and no range: all
  send(message(0, FUSE_NOTIFY_INVAL_INODE, bytes_of(out)));
}

bool is_being_killed(const SystemRoot& root, pid_t thread) {
  if (thread <= 0) return false;
  const auto status = read_file(root / ("proc/" + std::to_string(thread) + "/status"));
  if (!status) return status.error().kind == Errc::NotFound;
  constexpr std::uint64_t kKill = 1U << 8U;  // SIGKILL is signal 9
  for (const std::string& line : split(*status, '\n')) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) & kKill) != 0) return true;
  }
  return false;
}

}  // namespace spark::staging
