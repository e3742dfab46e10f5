#include "fleet/link/connection.hpp"

#include <algorithm>

namespace spark::fleet {
namespace {

using std::chrono::steady_clock;

constexpr Bytes kPart = 256 * kKiB, kLongestEnd = 64 * kKiB;

const std::string& noise() {
  static const std::string bytes(kMostLinkBytes, 'x');
  return bytes;
}

PeerRequest request_for(PeerRequest::Kind kind, Bytes bytes) {
  PeerRequest request;
  request.kind = kind;
  request.bytes = bytes;
  return request;
}

}  // namespace

LinkConnection::LinkConnection(std::unique_ptr<Channel> channel, std::chrono::milliseconds silence)
    : channel_(std::move(channel)), silence_(silence), part_(kPart, '\0') {}

Result<LinkConnection> LinkConnection::open(const std::shared_ptr<Security>& security, const Endpoint& peer,
                                            std::chrono::milliseconds patience,
                                            std::chrono::milliseconds silence) {
  auto channel = Channel::connect(security, peer, patience);
  if (!channel) return channel.take_error();
  return LinkConnection(std::move(*channel), silence);
}

Result<LinkEnd> LinkConnection::end() {
  const auto head = ask(request_for(PeerRequest::Kind::Link, 0), {});
  if (!head) return head.take_error();
  if (head->status != 200 || head->length > kLongestEnd)
    return fail(Errc::Unsupported, "its version of spark-stage does not know this test",
                "install the same version on all hosts");
  std::string text(buffered_.substr(0, head->length));
  buffered_.erase(0, text.size());
  const std::size_t early = text.size();
  text.resize(head->length);
  if (auto read = channel_->read_all(std::span(text).subspan(early)); !read) return read.take_error();
  const auto object = parse_json_object(text);
  if (!object) return object.take_error();
  return link_end_from(*object);
}

Result<> LinkConnection::receive(Bytes bytes) {
  const auto head = ask(request_for(PeerRequest::Kind::LinkSend, bytes), {});
  if (!head) return head.take_error();
  if (head->length != bytes) return fail(Errc::Unavailable, "the peer refused to send");
  Bytes left = bytes - std::min<Bytes>(bytes, buffered_.size());
  buffered_.erase(0, bytes - left);
  while (left > 0) {
    const auto read = channel_->read_some(std::span(part_).first(std::min<Bytes>(left, kPart)));
    if (!read) return read.take_error();
    if (*read == 0) return fail(Errc::Unavailable, "the peer closed the connection");
    left -= *read;
  }
  return {};
}

Result<> LinkConnection::send(Bytes bytes) {
  const auto head =
      ask(request_for(PeerRequest::Kind::LinkTake, bytes), std::string_view(noise()).substr(0, bytes));
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
