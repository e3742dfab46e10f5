// Answers requests from peers: the units of this host, and their content. Runs in its own process, which may
// block on drives and on the network. One thread per connection; buffers come from a fixed pool.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/shares.hpp"
#include "base/threads.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/serve/buffer_pool.hpp"
#include "fleet/serve/offers.hpp"
#include "fleet/serve/published.hpp"
#include "fleet/serve/served_counts.hpp"
#include "fleet/serve/walks.hpp"
#include "fleet/transport/channel.hpp"
#include "fleet/transport/http.hpp"
#include "staging/files/io/throttle.hpp"

namespace spark::fleet {

struct ServerSettings {
  std::vector<Endpoint> listen;
  std::filesystem::path cache, state_dir, boards;  // folders
  NodeId node = 0;
  std::string version;    // version of this program
  Bytes upload = 0;       // limit in bytes per second while a dataset is leased here; 0: no limit
  std::string interface;  // network interface of the address; empty: unknown
  Bytes link = 0;         // link speed in bytes per second; 0: unknown
  std::chrono::milliseconds greeting{5'000};  // for a whole greeting
  // For an answer, or 8 MiB of a long one. Its buffer is released then.
  TimeLimits sending{std::chrono::milliseconds(5'000), std::chrono::milliseconds(30'000)};
  std::set<std::string> folders{};  // see PublishedCopies, also for the next field
  std::vector<AdoptedFolder> adopted{};
};

class Server {
 public:
  // True if a host that connects from `address` is a peer.
  using MayAsk = std::function<bool(const std::string& address)>;
  Server(ServerSettings settings, std::shared_ptr<Security> security, MayAsk may_ask);

  Result<> listen();
  // Listens, if it does not yet, and runs until `stop`. Its threads end with it.
  Result<> run(const StopFlag& stop);
  void look();  // refreshes the published and leased copies, and frees lists; see PublishedCopies::look()
  bool is_limited() const { return published_.is_leased(); }  // local jobs have priority
  // See ServedCounts::report(); "buffers_in_use", "offered": see offered(), and "reason" if new copies are
  // not served.
  json::object report() const;
  json::array offered() const { return published_.offered(); }

 private:
  ServerSettings settings_;
  std::shared_ptr<Security> security_;
  MayAsk may_ask_;
  PublishedCopies published_;
  Walks walks_;
  // Connections that have not shown yet that they have the fleet's key: a program without it takes places
  // from its own host's peer at most.
  std::mutex greeting_;  // guards greetings_
  Shares<std::string> greetings_;
  LocalOffers local_offers_;
  Offers offers_{local_offers_};
  ServedCounts counts_;
  staging::Throttle throttle_;
  std::vector<UniqueFd> listening_;

  BufferPool buffers_;

  // A client is an address: one host may not take what others need.
  std::unique_ptr<Channel> greet(UniqueFd socket, const std::string& client);
  void serve(UniqueFd socket);
  // `buffered` has what followed the request, see read_request().
  Result<> answer_link(Channel& channel, const PeerRequest& request, std::string& buffered);
  Result<> answer(Channel& channel, const std::string& client, const PeerRequest& request);
  void limit_sending(Channel& channel, SteadyTime began) const;
  Result<> send(Channel& channel, const AnswerHead& head, std::string_view body);
  Result<> send_body(Channel& channel, const AnswerHead& head, std::string_view body);
  Result<> send_unit(Channel& channel, const std::string& client, const PeerRequest& request);
  Result<> send_file(Channel& channel, const std::string& client,
                     const std::optional<std::filesystem::path>& path);
};

}  // namespace spark::fleet
