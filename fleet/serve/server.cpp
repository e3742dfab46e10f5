#include "fleet/serve/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/network/addresses.hpp"
#include "fleet/link/end.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kMostConnections = 512, kMostOfClient = 128;
constexpr std::size_t kMostBuffers = 8;
// Bytes sent at once under a limit. Several sends share the limit, and each peer waits only kPatience for its
// next byte.
constexpr Bytes kLargestPart = 256 * 1024, kSmallestPart = 4 * 1024, kPartsPerSecond = 16;
constexpr std::size_t kMostGreetings = 32;  // of one address; a peer opens a dozen connections at once
constexpr std::chrono::milliseconds kIdle{60'000};  // without a whole request on a connection
constexpr std::chrono::milliseconds kTick{200};
constexpr AnswerHead kMissing{.status = 404};

bool is_about_link(const PeerRequest& request) {
  return request.kind >= PeerRequest::Kind::Link;
}

}  // namespace

Server::Server(ServerSettings settings, std::shared_ptr<Security> security, MayAsk may_ask,
               std::unique_ptr<OfferSource> source)
    : settings_(std::move(settings)),
      security_(std::move(security)),
      may_ask_(std::move(may_ask)),
      published_(settings_.cache, settings_.state_dir, settings_.folders, settings_.adopted),
      walks_(settings_.boards, published_),
      greetings_(std::numeric_limits<std::size_t>::max(), kMostGreetings),
      source_(source ? std::move(source) : std::make_unique<LocalOffers>(settings_.boards, published_)),
      offers_(*source_, settings_.reading),
      throttle_(settings_.upload),
      listeners_(settings_.listen),
      buffers_(kMostBuffers, [] { return std::make_unique<staging::IoBuffer>(kUnitBuffer); }),
      reads_(settings_.reading),
      connections_({kMostConnections, kMostOfClient}, [this](UniqueFd socket) {
        [[maybe_unused]] const Result<> served = no_throw([&] {
          serve(std::move(socket));
          return Result<>();
        });
      }) {}

Result<> Server::listen() {
  return listeners_.open();
}

Result<> Server::run(const StopFlag& stop) {
  if (listeners_.sockets().empty())
    if (auto listening = listen(); !listening) return listening;
  while (!stop) {
    connections_.join_ended();
    listeners_.open_missing(std::chrono::steady_clock::now());
    reads_.write_off(buffers_);
    accept_some();
  }
  listeners_.close();  // before it waits: the next server may need these addresses
  if (connections_.end(settings_.reading)) return {};
  return fail(Errc::TimedOut, "serving peers: a read hangs", "look at the drives of the served datasets");
}

void Server::accept_some() {
  std::vector<pollfd> polls;
  for (const UniqueFd& listening : listeners_.sockets()) polls.push_back({listening.get(), POLLIN, 0});
  if (::poll(polls.data(), polls.size(), static_cast<int>(kTick.count())) <= 0) return;
  for (const pollfd& poll : polls) {
    UniqueFd socket(::accept4(poll.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const std::string client = socket ? address_of(socket.get()) : "";
    if (socket && !connections_.open(std::move(socket), client))
      counts_.refused(client, Refusal::Share, std::chrono::steady_clock::now());
  }
}

// Null if it is refused.
std::unique_ptr<Channel> Server::greet(UniqueFd socket, const std::string& address) {
  const auto refuse = [&](Refusal why) {
    counts_.refused(address, why, std::chrono::steady_clock::now());
    return nullptr;
  };
  if (!may_ask_(address)) return refuse(Refusal::Unlisted);
  {
    const std::scoped_lock lock(greeting_);
    if (!greetings_.enter(address)) return refuse(Refusal::Share);
  }
  auto channel = no_throw([&] { return Channel::accept(security_, std::move(socket), settings_.greeting); });
  {
    const std::scoped_lock lock(greeting_);
    greetings_.leave(address);
  }
  if (channel) return std::move(*channel);
  // A client that sends nothing is no host of a fleet.
  return channel.error().kind == Errc::Denied ? refuse(Refusal::Key) : nullptr;
}

void Server::serve(UniqueFd socket) {
  const std::string client = address_of(socket.get());
  const auto channel = greet(std::move(socket), client);
  if (!channel) return;
  counts_.connected();
  for (std::string buffered;;) {
    channel->set_limits(kIdle, std::chrono::steady_clock::now() + kIdle);
    const auto head = read_request(*channel, buffered);
    if (!head || !*head) return;
    const auto request = (*head)->is_get ? parse_target((*head)->target) : std::nullopt;
    const auto answered = !request                  ? send(*channel, kMissing, "")
                          : is_about_link(*request) ? answer_link(*channel, *request, buffered)
                                                    : answer(*channel, client, *request);
    if (!answered) return;
  }
}

void Server::limit_sending(Channel& channel, SteadyTime began) const {
  channel.set_limits(settings_.sending.silence, began + settings_.sending.whole);
}

Result<> Server::send(Channel& channel, const AnswerHead& head, std::string_view body) {
  AnswerHead whole = head;
  whole.length = body.size();
  limit_sending(channel, std::chrono::steady_clock::now());
  if (auto sent = channel.write_all(to_text(whole)); !sent) return sent;
  if (auto sent = channel.write_all(body); !sent) return sent;
  return channel.flush();
}

Result<> Server::answer(Channel& channel, const std::string& client, const PeerRequest& request) {
  SetState state;
  switch (request.kind) {
    case PeerRequest::Kind::Node:
      return send(channel, {},
                  json::serialize(json::object{{"node", node_text(settings_.node)},
                                               {"version", settings_.version},
                                               {"interface", settings_.interface},
                                               {"link_bytes_per_second", settings_.link},
                                               {"limited", is_limited()}}));
    case PeerRequest::Kind::Datasets:
      published_.look();
      return send(channel, {}, json::serialize(json::object{{"datasets", published_.list()}}));
    case PeerRequest::Kind::Unit:
      return send_unit(channel, client, request);
    case PeerRequest::Kind::WalkEntries:
      return send_file(channel, client, walks_.entries(request.set));
    case PeerRequest::Kind::CopyEntries:
      return send_file(channel, client, walks_.entries_of_copy(request.set));
    case PeerRequest::Kind::WalkNotes:
    case PeerRequest::Kind::WalkFolders: {
      const bool is_notes = request.kind == PeerRequest::Kind::WalkNotes;
      const auto text = is_notes ? walks_.notes(request.set) : walks_.folders(request.set);
      return text ? send(channel, {}, *text) : send(channel, kMissing, "");
    }
    case PeerRequest::Kind::Walk:
      state = walks_.state(request.set, request.from);
      break;
    case PeerRequest::Kind::Set:
      // Note the caller before reading the state: from now on the worker leaves the caller's units to the
      // caller.
      state = offers_.state(request.set, request.from);
      break;
    default:
      return send(channel, kMissing, "");  // see answer_link()
  }
  state.node = settings_.node;
  return send(channel, {}, to_text(state));
}

Result<> Server::answer_link(Channel& channel, const PeerRequest& request, std::string& buffered) {
  static const std::string noise(kMostLinkBytes, 'x');
  if (request.kind == PeerRequest::Kind::Link) {
    const LinkEnd end = end_at(channel.local_address(), is_limited() ? settings_.upload : 0);
    return send(channel, {}, json::serialize(to_json(end)));
  }
  if (request.kind == PeerRequest::Kind::LinkSend)
    return send_body(channel, {.length = request.bytes}, std::string_view(noise).substr(0, request.bytes));
  limit_sending(channel, std::chrono::steady_clock::now());
  if (auto taken = skip_body(channel, buffered, request.bytes); !taken) return taken;
  return send(channel, {}, "");
}

Result<> Server::send_unit(Channel& channel, const std::string& client, const PeerRequest& request) {
  auto searching = reads_.begin(request.set);
  if (!searching) return refuse_hung(client);
  const auto offer = offers_.find(request.set, std::chrono::steady_clock::now());
  if (!offer && reads_.hangs(searching)) return refuse_hung(client);
  searching.reset();
  if (!offer) return send(channel, kMissing, "");
  const auto buffer = buffers_.take(client);
  auto reading = reads_.begin(request.set, &buffer);
  if (!reading) return refuse_hung(client);
  const auto body = offer->read(request.unit, *buffer);
  reading.reset();
  if (!body) {
    if (body.error().kind != Errc::NotFound) counts_.failed(client);
    return send(channel, kMissing, "");
  }
  const std::string_view bytes(reinterpret_cast<const char*>(body->bytes.data()), body->bytes.size());
  auto sent = send_body(
      channel, {.length = bytes.size(), .piece = body->piece, .file = body->file, .is_plain = body->is_plain},
      bytes);
  if (sent) counts_.sent(client, bytes.size());
  if (!sent) counts_.failed(client);
  return sent;
}

// In parts if there is a limit, so that the peer sees progress whatever the limit is.
Result<> Server::send_body(Channel& channel, const AnswerHead& head, std::string_view body) {
  const bool is_slowed = is_limited() && settings_.upload != 0;
  SteadyTime began = std::chrono::steady_clock::now();
  limit_sending(channel, began);
  auto sent = channel.write_all(to_text(head));
  while (sent && is_slowed && !body.empty()) {
    sent = channel.flush();
    const auto part =
        body.substr(0, std::clamp(settings_.upload / kPartsPerSecond, kSmallestPart, kLargestPart));
    const SteadyTime held_back = std::chrono::steady_clock::now();
    throttle_.wait(part.size(), [] { return false; });
    began += std::chrono::steady_clock::now() - held_back;  // not the receiver's time
    limit_sending(channel, began);
    if (sent) sent = channel.write_all(part);
    body.remove_prefix(part.size());
  }
  if (sent) sent = channel.write_all(body);
  return sent ? channel.flush() : sent;
}

Result<> Server::send_file(Channel& channel, const std::string& client,
                           const std::optional<std::filesystem::path>& path) {
  const std::string name = path ? path->native() : "";
  auto opening = reads_.begin(name);
  if (!opening) return refuse_hung(client);
  UniqueFd file(path ? ::open(path->c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    opening.reset();
    return send(channel, kMissing, "");
  }
  const AnswerHead head{.length = static_cast<Bytes>(info.st_size)};
  const staging::IoMode mode = staging::make_direct(file.get());
  opening.reset();
  limit_sending(channel, std::chrono::steady_clock::now());
  Result<> sent = channel.write_all(to_text(head));
  for (Bytes done = 0; sent && done < head.length;) {
    const std::size_t bytes = std::min<Bytes>(kPackBytes, head.length - done);
    const auto buffer = buffers_.take(client);  // between two parts, another connection may have it
    auto reading = reads_.begin(name, &buffer);
    if (!reading) return refuse_hung(client);
    const auto read = staging::read_at(file.get(), mode, buffer->data(), bytes, done);
    if (!mode.direct) staging::drop_pages(file.get(), done, bytes);
    reading.reset();
    if (read.error != 0 || read.bytes != bytes) {
      sent = fail(Errc::Failed, "reading a walk");  // close the connection, since the announced length can't
                                                    // be sent
    } else {
      limit_sending(channel, std::chrono::steady_clock::now());
      sent = channel.write_all({reinterpret_cast<const char*>(buffer->data()), bytes});
      done += bytes;
    }
  }
  return sent ? channel.flush() : sent;
}

Result<> Server::refuse_hung(const std::string& client) {
  counts_.failed(client);
  return fail(Errc::Unavailable, "reading for a peer: the drive hangs");
}

json::object Server::report() const {
  json::object all = counts_.report(std::chrono::steady_clock::now());
  all["buffers_in_use"] = buffers_.in_use();
  all["offered"] = offered();
  std::string trouble = published_.trouble();
  if (const std::string missing = listeners_.trouble(); !missing.empty())
    trouble += (trouble.empty() ? "" : "; ") + missing;
  if (!trouble.empty()) all["reason"] = std::move(trouble);
  return all;
}

void Server::look() {
  published_.look();
  offers_.drop_unused(std::chrono::steady_clock::now());
}

}  // namespace spark::fleet
