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
#include "fleet/serve/connections.hpp"
#include "fleet/serve/listeners.hpp"
#include "fleet/serve/offers.hpp"
#include "fleet/serve/published.hpp"
#include "fleet/serve/running_reads.hpp"
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
  std::chrono::milliseconds reading{5'000};  // a read that takes longer hangs: a peer has given up then
};

class Server {
 public:
  // True if a host that connects from `address` is a peer.
  using MayAsk = std::function<bool(const std::string& address)>;
  // `source`: what it serves; null: its published copies, and the boards.
  Server(ServerSettings settings, std::shared_ptr<Security> security, MayAsk may_ask,
         std::unique_ptr<OfferSource> source = nullptr);

  Result<> listen();
  // Listens, if it does not yet, and runs until `stop`. Its threads end with it. TimedOut: some hang in a
  // read; the server's end would wait for them.
  Result<> run(const StopFlag& stop);
  void look();  // refreshes the published and leased copies, and frees lists; see PublishedCopies::look()
  bool is_limited() const { return published_.is_leased(); }  // local jobs have priority
  // See ServedCounts::report(); "buffers_in_use", "offered": see offered(), and "reason" if new copies are
  // not served, or nothing at one of its addresses.
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
  std::unique_ptr<OfferSource> source_;
  Offers offers_;
  ServedCounts counts_;
  staging::Throttle throttle_;
  Listeners listeners_;
  BufferPool buffers_;
  RunningReads reads_;
  Connections connections_;  // last: their threads use the others

  void accept_some();
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
  // Closes the connection: the peer asks again later, while what is missing here it takes from elsewhere.
  Result<> refuse_hung(const std::string& client);
};

}  // namespace spark::fleet
