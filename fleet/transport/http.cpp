#include "fleet/transport/http.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace spark::fleet {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kLongestHead = 8 * 1024;
constexpr std::size_t kReadAtOnce = 16 * 1024;
constexpr std::string_view kPiece = "Spark-Piece-Digest", kFile = "Spark-File-Digest", kPlain = "Spark-Plain";

tl::unexpected<Error> no_head() {
  return fail(Errc::Invalid, "the other host does not speak the fleet's protocol");
}

// False: more input is needed.
template <class Parser>
Result<bool> parse_head(Parser& parser, std::string& buffered) {
  const std::size_t end = buffered.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (buffered.size() > kLongestHead) return no_head();
    return false;
  }
  parser.eager(false);
  parser.skip(false);
  parser.header_limit(kLongestHead);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(buffered.data(), end + 4), error);
  if (error || !parser.is_header_done()) return no_head();
  buffered.erase(0, used);
  return true;
}

template <class Head>
Result<std::optional<Head>> read_head(Channel& channel, std::string& buffered,
                                      Result<std::optional<Head>> (*parse)(std::string&)) {
  for (;;) {
    auto head = parse(buffered);
    if (!head || *head) return head;
    std::array<char, kReadAtOnce> more{};
    const auto read = channel.read_some(more);
    if (!read) return read.take_error();
    if (*read == 0) return std::optional<Head>();
    buffered.append(more.data(), *read);
  }
}

}  // namespace

std::string to_text(const AnswerHead& head) {
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + (head.status == 200 ? " OK" : " No") +
                     "\r\nContent-Length: " + std::to_string(head.length) + "\r\n";
  if (head.piece) text += std::string(kPiece) + ": " + staging::to_hex(*head.piece) + "\r\n";
  if (head.file) text += std::string(kFile) + ": " + staging::to_hex(*head.file) + "\r\n";
  if (head.is_plain) text += std::string(kPlain) + ": yes\r\n";
  return text + "\r\n";
}

std::string request_text(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: fleet\r\n\r\n";
}

Result<std::optional<RequestHead>> parse_request(std::string& buffered) {
  http::request_parser<http::empty_body> parser;
  const auto whole = parse_head(parser, buffered);
  if (!whole) return whole.take_error();
  if (!*whole) return std::optional<RequestHead>();
  const auto target = parser.get().target();
  return std::optional(
      RequestHead{parser.get().method() == http::verb::get && !parser.content_length() && !parser.chunked(),
                  std::string(target.data(), target.size())});
}

Result<std::optional<AnswerHead>> parse_answer(std::string& buffered) {
  http::response_parser<http::empty_body> parser;
  const auto whole = parse_head(parser, buffered);
  if (!whole) return whole.take_error();
  if (!*whole) return std::optional<AnswerHead>();
  if (!parser.content_length()) return no_head();
  AnswerHead head;
  head.status = parser.get().result_int();
  head.length = *parser.content_length();
  const auto digest = [&](std::string_view name) {
    const auto text = parser.get()[{name.data(), name.size()}];
    return staging::digest_from_hex({text.data(), text.size()});
  };
  head.piece = digest(kPiece);
  head.file = digest(kFile);
  head.is_plain = parser.get()[{kPlain.data(), kPlain.size()}] == "yes";
  return std::optional(head);
}

Result<std::optional<RequestHead>> read_request(Channel& channel, std::string& buffered) {
  return read_head<RequestHead>(channel, buffered, parse_request);
}

Result<AnswerHead> read_answer(Channel& channel, std::string& buffered) {
  auto head = read_head<AnswerHead>(channel, buffered, parse_answer);
  if (!head) return head.take_error();
  if (!*head) return fail(Errc::Unavailable, "the other host closed the connection");
  return **head;
}

Result<> read_body(Channel& channel, std::string& buffered, std::span<char> into) {
  const std::size_t early = std::min(buffered.size(), into.size());
  std::copy_n(buffered.begin(), early, into.begin());
  buffered.erase(0, early);
  return channel.read_all(into.subspan(early));
}

Result<> skip_body(Channel& channel, std::string& buffered, Bytes bytes) {
  Bytes left = bytes - std::min<Bytes>(bytes, buffered.size());
  buffered.erase(0, bytes - left);
  std::array<char, kReadAtOnce> part{};
  while (left > 0) {
    const auto read = channel.read_some(std::span(part).first(std::min<Bytes>(left, part.size())));
    if (!read) return read.take_error();
    if (*read == 0) return fail(Errc::Unavailable, "the peer closed the connection");
    left -= *read;
  }
  return {};
}

}  // namespace spark::fleet
