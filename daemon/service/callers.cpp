// Describes callers in messages.
#include "base/file.hpp"
#include "daemon/service/handlers.hpp"

namespace spark {

std::string process_in_words(pid_t pid) {
  const auto name = read_line_file("/proc/" + std::to_string(pid) + "/comm");
  return "pid " + std::to_string(pid) + (name ? " (" + *name + ")" : "");
}

std::string user_in_words(uid_t uid) {
  return ", uid " + std::to_string(uid);
}

Asker asker_of(const api::Caller& caller) {
  return {process_in_words(caller.pid) + user_in_words(caller.uid), caller.uid};
}

}  // namespace spark
