#include "daemon/volumes/adapters/asker.hpp"

namespace spark::volumes {

asio::awaitable<Result<json::object>> Asker::ask(std::string verb, json::object request, Duration deadline) {
  co_return co_await runner_.ask(subject_, std::move(verb), std::move(request), deadline);
}

asio::awaitable<Result<json::object>> Asker::act(std::string verb, json::object request, Duration deadline) {
  auto answer = co_await ask(std::move(verb), std::move(request), deadline);
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
