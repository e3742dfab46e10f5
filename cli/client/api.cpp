#include "cli/client/api.hpp"

#include "base/text.hpp"

namespace spark::cli {

Result<json::object> object_of(const Answer& answer, const Request& request) {
  auto body = parse_json_object(answer.body);
  if (answer.status / 100 == 2 && body) return body;
  if (const json::object* error = body ? get_object(*body, "error") : nullptr) {
    return fail(error_from_json(*error));
  }
  constexpr std::size_t kShown = 120;
  return fail(answer.status == 403 ? Errc::Denied : Errc::Failed,
              "spark-staged answered " + std::to_string(answer.status) + " to " + request.method + " " +
                  request.target + ", and the answer is not its own: '" +
                  printable(std::string_view(answer.body).substr(0, kShown)) + "'",
              "are spark-stage and spark-staged of one version?");
}

Result<json::object> call(Client& client, const Request& request) {
  auto answer = client.send(request);
  if (!answer) return answer.take_error();
  return object_of(*answer, request);
}

std::string percent_encoded(std::string_view segment) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : segment) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace spark::cli
