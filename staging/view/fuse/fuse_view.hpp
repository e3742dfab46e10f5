// Answers the kernel's FUSE requests for a view. Only fuse_view.cpp sees the kernel's protocol
// (linux/fuse.h).
//
// The tree never changes, so the kernel may keep names, attributes and pages as long as it wants. Opens are
// asked for only where the kernel can read complete files itself, see OpenFiles. A read whose pieces are
// missing waits in a list; no thread waits for it. The kernel asks for a file's bytes in the background and
// takes fewer bytes for the file's end, so a read is answered in full or with an error.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/file.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/view/fuse/open_files.hpp"
#include "staging/view/view_map.hpp"
#include "staging/view/view_reader.hpp"
#include "staging/view/view_tree.hpp"
#include "staging/view/waiting_reads.hpp"

namespace spark::staging {

inline constexpr std::size_t kMostRead = kMiB;  // of one request; see mount_fuse()
// Of a reader's buffer.
inline constexpr std::size_t kReadBuffer = kMostRead + 2 * kLargestAlignment;
inline constexpr std::size_t kRequestBuffer = 64 * kKiB;  // a request without data is smaller

// For the kernel: a head, then the bytes.
struct FuseMessage {
  std::array<std::byte, 16> head;
  std::span<const std::byte> bytes;
};

// Thread-safe.
class FuseView {
 public:
  using Send = std::function<void(const FuseMessage&)>;
  using IsBeingKilled = std::function<bool(pid_t thread)>;

  // All must outlive it.
  FuseView(const ViewTree& tree, ViewMap& map, ViewReader& reader, Send send, IsBeingKilled is_being_killed,
           Backings backings)
      : tree_(tree),
        map_(map),
        reader_(reader),
        send_(std::move(send)),
        is_being_killed_(std::move(is_being_killed)),
        open_files_(tree, map, reader, std::move(backings)) {}

  // Sends the answer, now or in settle(). Requests that need none get none.
  void answer(std::span<const std::byte> request, const IoBuffer& buffer);

  // Answers waiting reads whose pieces have come, or will not come. `looks_closer`: also those whose thread
  // is being killed; and asks for the missing pieces of the others again.
  void settle(const IoBuffer& buffer, bool looks_closer);

  std::size_t waiting() const { return waiting_.size(); }
  // The kernel sends unanswered requests of a process that has ended to the next one, if asked to.
  bool can_resend() const { return can_resend_; }

 private:
  struct Request;

  const ViewTree& tree_;
  ViewMap& map_;
  ViewReader& reader_;
  Send send_;
  IsBeingKilled is_being_killed_;
  OpenFiles open_files_;
  WaitingReads waiting_;
  std::atomic<bool> can_resend_{false};
  std::atomic<bool> answers_opens_{true};  // a process that takes over can't know

  void send(std::uint64_t id, int error, std::span<const std::byte> bytes = {}) const;
  void act(const Request& request, NodeNumber node, const IoBuffer& buffer);
  void interrupt(const Request& request);
  void begin(const Request& request);
  void look_up(const Request& request, NodeNumber folder) const;
  void show(const Request& request, NodeNumber node) const;
  void list(const Request& request, NodeNumber folder, const IoBuffer& buffer) const;
  void read(const Request& request, NodeNumber file, const IoBuffer& buffer);
  void read_or_wait(const WaitingRead& read, const IoBuffer& buffer);
  void open(const Request& request, NodeNumber file);
  void show_space(const Request& request) const;
};

// The kernel sends unanswered requests again.
FuseMessage resend_notice();

// The kernel drops the node's pages. A node that it does not know costs it a microsecond.
void send_drop_notice(NodeNumber node, const FuseView::Send& send);

// Whether a SIGKILL waits for the thread, or it has ended. A signal with a handler is none: no program
// expects EINTR from the read of a file.
bool is_being_killed(const SystemRoot& root, pid_t thread);

}  // namespace spark::staging
