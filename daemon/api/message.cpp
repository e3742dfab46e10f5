// Converts between HTTP and the handler's types.
#include <charconv>

#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/api/http_server.hpp"
#include "daemon/log.hpp"

namespace spark::api {
namespace {

namespace http = boost::beast::http;

// The version of Prometheus's text format that its servers request.
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

unsigned status_of(Errc kind) {
  switch (kind) {
    case Errc::Invalid:
      return 400;
    case Errc::Denied:
      return 403;
    case Errc::NotFound:
      return 404;
    case Errc::Refused:
    case Errc::Mismatch:
      return 409;
    case Errc::Unavailable:
      return 503;
    case Errc::NoSpace:
      return 507;
    case Errc::TimedOut:
      return 504;
    default:
      return 500;
  }
}

Result<Request> to_request(const HttpRequest& message, Caller caller) {
  Request request;
  request.method = std::string(message.method_string());
  request.caller = caller;
  auto path = decode_path(std::string_view(message.target().data(), message.target().size()));
  if (!path) return path.take_error();
  request.path = std::move(*path);
  if (!message.body().empty()) {
    auto body = parse_json_object(message.body());
    if (!body) return body.take_error();
    request.body = std::move(*body);
  }
  return request;
}

Answer denied(const Caller& caller) {
  return error_answer({Errc::Denied, "uid " + std::to_string(caller.uid) + " may not use spark-stage",
                       "become a member of the group spark-stage, or root"});
}

Answer handler_failure(const std::exception& failure) {
  return error_answer({Errc::Failed, std::string("the daemon could not answer: ") + failure.what(),
                       "this is a defect; `journalctl -u spark-staged` has more"});
}

}  // namespace

Answer error_answer(const Error& error) {
  Answer answer;
  answer.status = status_of(error.kind);
  answer.body = json::object{{"error", to_json(error)}};
  return answer;
}

Answer too_large(const Limits& limits, bool is_header) {
  const std::uint64_t limit = is_header ? limits.header : limits.body;
  Answer answer = error_answer({Errc::Invalid,
                                std::string("the ") + (is_header ? "header" : "body") + " is larger than " +
                                    std::to_string(limit) + " bytes",
                                ""});
  answer.status = is_header ? 431 : 413;
  return answer;
}

Answer too_many(const Caller& caller) {
  Answer answer =
      error_answer({Errc::Unavailable,
                    (caller.address.empty() ? "uid " + std::to_string(caller.uid) : caller.address) +
                        " has too many connections already",
                    "end some, or wait for their end"});
  answer.status = 429;
  return answer;
}

asio::awaitable<Answer> answer_message(const Handler& handler, const HttpRequest& message, Caller caller) {
  if (!caller.may_use) co_return denied(caller);
  try {
    auto request = to_request(message, caller);
    if (!request) co_return error_answer(request.error());
    co_return co_await handler(std::move(*request));
  } catch (const std::exception& failure) {
    log::error(std::string("answering ") + std::string(message.target()) + ": " + failure.what());
    co_return handler_failure(failure);
  }
}

HttpResponse to_response(Answer answer, unsigned version, bool keep_alive) {
  HttpResponse response(http::int_to_status(answer.status), version);
  response.set(http::field::server, std::string("spark-staged/") + kVersion);
  response.set(http::field::content_type, answer.metrics ? kPrometheusText : "application/json");
  response.keep_alive(keep_alive);
  response.body() = answer.metrics ? std::move(*answer.metrics) : json::serialize(answer.body) + "\n";
  response.prepare_payload();
  return response;
}

Result<std::vector<std::string>> decode_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::vector<std::string> parts;
  for (const std::string& raw : split(target, '/')) {
    if (raw.empty()) continue;
    std::string part;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '%') {
        part += raw[i];
        continue;
      }
      unsigned code = 0;
      const char* digits = raw.data() + i + 1;
      if (i + 2 >= raw.size() || std::from_chars(digits, digits + 2, code, 16).ptr != digits + 2) {
        return fail(Errc::Invalid, "a bad %-escape in the path " + printable(target));
      }
      part += static_cast<char>(code);
      i += 2;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace spark::api
