#include "fleet/link/connection.hpp"

namespace spark::fleet {
namespace {

using std::chrono::steady_clock;

constexpr Bytes kLongestEnd = 64 * kKiB;

const std::string& noise() {
  static const std::string bytes(kMostLinkBytes, 'x');
  return bytes;
}

}  // namespace

LinkConnection::LinkConnection(std::unique_ptr<Channel> channel, std::chrono::milliseconds silence)
    : channel_(std::move(channel)), silence_(silence) {}

Result<LinkConnection> LinkConnection::open(const std::shared_ptr<Security>& security, const Endpoint& peer,
                                            std::chrono::milliseconds patience,
                                            std::chrono::milliseconds silence) {
  auto channel = Channel::connect(security, peer, patience);
  if (!channel) return channel.take_error();
  return LinkConnection(std::move(*channel), silence);
}

Result<LinkEnd> LinkConnection::end() {
  const auto head = ask({.kind = PeerRequest::Kind::Link}, {});
  if (!head) return head.take_error();
  if (head->status != 200 || head->length > kLongestEnd)
    return fail(Errc::Unsupported, "its version of spark-stage does not know this test",
                "install the same version on all hosts");
  std::string text(head->length, '\0');
  if (auto read = read_body(*channel_, buffered_, text); !read) return read.take_error();
  const auto object = parse_json_object(text);
  if (!object) return object.take_error();
  return link_end_from(*object);
}

Result<> LinkConnection::receive(Bytes bytes) {
  const auto head = ask({.kind = PeerRequest::Kind::LinkSend, .bytes = bytes}, {});
  if (!head) return head.take_error();
  if (head->length != bytes) return fail(Errc::Unavailable, "the peer refused to send");
  return skip_body(*channel_, buffered_, bytes);
}

Result<> LinkConnection::send(Bytes bytes) {
  const auto head =
      ask({.kind = PeerRequest::Kind::LinkTake, .bytes = bytes}, std::string_view(noise()).substr(0, bytes));
  if (!head) return head.take_error();
  if (head->status != 200) return fail(Errc::Unavailable, "the peer refused to receive");
  return {};
}

Bytes LinkConnection::moved(Way way) const {
  const TcpBytes bytes = channel_->tcp_bytes();
  return way == Way::From ? bytes.received : bytes.acknowledged;
}

Result<AnswerHead> LinkConnection::ask(const PeerRequest& request, std::string_view body) {
  channel_->set_limits(silence_, steady_clock::now() + 2 * silence_);
  Result<> sent = channel_->write_all(request_text(to_target(request)));
  if (sent) sent = channel_->write_all(body);
  if (sent) sent = channel_->flush();
  if (!sent) return sent.take_error();
  return read_answer(*channel_, buffered_);
}

}  // namespace spark::fleet
