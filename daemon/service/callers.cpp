// Who asks, for people, and what of others' they may end.
#include "base/file.hpp"
#include "daemon/log.hpp"
#include "daemon/service/handlers.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

constexpr Duration kUserDeadline{5'000};  // a directory server may be asked

}  // namespace

std::string process_in_words(pid_t pid) {
  const auto name = read_line_file("/proc/" + std::to_string(pid) + "/comm");
  return "pid " + std::to_string(pid) + (name ? " (" + *name + ")" : "");
}

Asker asker_of(const api::Caller& caller) {
  return {process_in_words(caller.pid) + ", uid " + std::to_string(caller.uid), caller.uid};
}

asio::awaitable<bool> may_end(const DaemonParts& daemon, api::Caller caller, Asker asker) {
  if (caller.may_change || caller.uid == asker.uid) co_return true;
  if (asker.user.empty()) co_return false;
  workers::Call call;
  call.verb = "user";
  call.subject = "the user of a job";
  call.request = {{"user", asker.user}};
  call.deadline = kUserDeadline;
  const auto user = co_await daemon.runner.run(std::move(call));
  if (!user) log::survived(user.error());
  co_return user&& get_int(*user, "uid") == std::int64_t{caller.uid};
}

}  // namespace spark
