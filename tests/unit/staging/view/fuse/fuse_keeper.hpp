// A process of its own that holds the device of a view's connection, and starts the processes that answer. A
// test must not do it: a reader that waits in the kernel can't be killed, and if the connection were held by
// the process that waits for this reader, or by a process that has a file of the view open, neither would
// ever end.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/file.hpp"
#include "staging/view/view_map.hpp"

namespace spark::staging::test {

inline constexpr int kHangs =
    600;  // seconds, after which a test does not end any more, also on a busy computer

class FuseKeeper {
 public:
  // Before anything of the view is open, and without other threads. The keeper ends with the thread that made
  // it, and after kHangs: then the kernel ends the connection and all of its readers.
  FuseKeeper(ViewPlace place, std::filesystem::path view);
  ~FuseKeeper();
  FuseKeeper(const FuseKeeper&) = delete;
  FuseKeeper& operator=(const FuseKeeper&) = delete;

  bool mount() { return ask('m') == 0; }  // and starts a server
  bool kill_server() { return ask('k') >= 0; }
  bool start_next_server() { return ask('n') == 0; }
  bool stop_server() { return ask('s') == 0; }
  bool begin_to_drop_pages() { return ask('d') == 0; }
  int wait_for_server() { return ask('w'); }  // returns its exit status
  void end();                                 // also the connection

 private:
  ViewPlace place_;
  std::filesystem::path view_;
  UniqueFd socket_;
  pid_t keeper_ = 0;

  int ask(char what);
  [[noreturn]] void keep();
};

}  // namespace spark::staging::test
