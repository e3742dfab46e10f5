#include "daemon/volumes/adapters/asker.hpp"

namespace spark::volumes {

asio::awaitable<Result<json::object>> Asker::ask(std::string verb, json::object request, Duration deadline) {
  co_return co_await runner_.ask(subject_, std::move(verb), std::move(request), deadline);
}

asio::awaitable<Result<json::object>> Asker::ask_beside(const std::string& what, std::string verb,
                                                        json::object request, Duration deadline) {
  return runner_.ask(what + " of " + subject_, std::move(verb), std::move(request), deadline);
}

asio::awaitable<Result<json::object>> Asker::act(std::string verb, json::object request, Duration deadline) {
  auto answer = co_await ask(std::move(verb), std::move(request), deadline);
  snapshot_.forget();
  co_return answer;
}

asio::awaitable<Result<json::object>> Asker::act_patiently(std::string verb, json::object request) {
  workers::Call call{std::move(verb), subject_, std::move(request)};
  workers::Cancellation never;
  auto answer = co_await runner_.run(std::move(call), never);
  snapshot_.forget();
  co_return answer;
}

asio::awaitable<Result<json::object>> Asker::act_jointly(std::string subject, std::string verb,
                                                         json::object request, Duration deadline) {
  auto answer =
      co_await runner_.ask_jointly(std::move(subject), std::move(verb), std::move(request), deadline);
  snapshot_.forget();
  co_return answer;
}

}  // namespace spark::volumes
