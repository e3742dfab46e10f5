#include "fleet/fetch/peer.hpp"

#include <algorithm>

#include "staging/manifest/lines.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kConnect{1000};
constexpr std::size_t kPart = 1 << 20;

}  // namespace

std::string Peer::endpoint() const {
  const std::scoped_lock lock(mutex_);
  return has_answered_ ? to_string(address_.endpoints[good_]) : "";
}

// With the key of the file, if that was replaced.
Result<std::unique_ptr<Channel>> Peer::open_channel(const Endpoint& endpoint,
                                                    std::chrono::milliseconds patience,
                                                    const Interrupt* interrupt) {
  const auto security = security_->get();
  auto channel = Channel::connect(security, endpoint, patience, interrupt);
  if (channel || channel.error().kind != Errc::Denied) return channel;
  const auto other = security_->instead_of(*security);
  return other ? Channel::connect(other, endpoint, patience, interrupt) : std::move(channel);
}

Result<Peer::Connection> Peer::connect(std::chrono::milliseconds patience, const Interrupt* interrupt) {
  std::size_t first = 0;
  {
    const std::scoped_lock lock(mutex_);
    first = good_;
  }
  Result<Connection> connection = fail(Errc::Unavailable, "no address of peer " + name() + " was found",
                                       "look at the name service of this host");
  for (std::size_t i = 0; i < address_.endpoints.size(); ++i) {
    const std::size_t at = (first + i) % address_.endpoints.size();
    auto channel = open_channel(address_.endpoints[at], std::min(patience, kConnect), interrupt);
    if (!channel) {
      if (channel.error().kind == Errc::Cancelled) return channel.take_error();
      connection = channel.take_error();
      continue;
    }
    const std::scoped_lock lock(mutex_);
    good_ = at;
    has_answered_ = true;
    return Connection{std::move(*channel), ""};
  }
  return connection;
}

template <class Take>
Result<AnswerHead> Peer::ask(const PeerRequest& request, const Take& take, const TimeLimits& limits,
                             const Interrupt* interrupt) {
  const SteadyTime until = std::chrono::steady_clock::now() + limits.whole;
  for (bool again = true;; again = false) {
    Connection connection;
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    const bool is_new = !connection.channel;
    if (is_new) {
      auto made = connect(limits.silence, interrupt);
      if (!made) return made.take_error();
      connection = std::move(*made);
    }
    Channel& channel = *connection.channel;
    channel.set_limits(limits.silence, until, interrupt);
    Result<> sent = channel.write_all(request_text(to_target(request)));
    if (sent) sent = channel.flush();
    Result<AnswerHead> head = sent ? read_answer(channel, connection.buffered) : sent.take_error();
    if (!head && !is_new && again && head.error().kind == Errc::Unavailable) {
      const std::scoped_lock lock(mutex_);
      idle_.clear();  // the peer was restarted
      continue;
    }
    if (!head) return head;
    if (auto read = take(channel, connection.buffered, *head); !read) return read.take_error();
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(connection));
    return head;
  }
}

Result<AnswerHead> Peer::get(const PeerRequest& request, std::span<char> into, const TimeLimits& limits) {
  const auto take = [&](Channel& channel, std::string& buffered, const AnswerHead& head) -> Result<> {
    if (head.length > into.size()) return fail(Errc::Invalid, "peer " + name() + " sends too much");
    return read_body(channel, buffered, into.first(head.length));
  };
  return ask(request, take, limits);
}

Result<std::string> Peer::get_text(const PeerRequest& request, Bytes most, const TimeLimits& limits,
                                   const Interrupt* interrupt) {
  std::string text;
  const auto take = [&](Channel& channel, std::string& buffered, const AnswerHead& head) -> Result<> {
    if (head.length > most) return fail(Errc::Invalid, "peer " + name() + " sends too much");
    text.resize(head.length);
    return read_body(channel, buffered, text);
  };
  const auto head = ask(request, take, limits, interrupt);
  if (!head) return head.take_error();
  if (head->status != 200)
    return fail(Errc::Unsupported, "peer " + name() + " does not know this request",
                "it may have another version of spark-stage");
  return text;
}

Result<> Peer::get_file(const PeerRequest& request, const std::filesystem::path& path, Bytes most,
                        const TimeLimits& limits) {
  auto file = staging::LineWriter::create(path);
  if (!file) return file.take_error();
  const auto take = [&](Channel& channel, std::string& buffered, const AnswerHead& head) -> Result<> {
    if (head.length > most) return fail(Errc::Invalid, "peer " + name() + " sends too much");
    std::string part(std::min<Bytes>(head.length, kPart), '\0');
    for (Bytes left = head.length; left > 0; left -= part.size()) {
      part.resize(std::min<Bytes>(left, kPart));
      if (auto read = read_body(channel, buffered, part); !read) return read;
      file->add(part);
    }
    return {};
  };
  const auto head = ask(request, take, limits);
  if (!head) return head.take_error();
  if (head->status != 200) return fail(Errc::NotFound, "peer " + name() + " does not have it any more");
  return file->commit();
}

}  // namespace spark::fleet
