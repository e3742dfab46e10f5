// Answers peers: which units this host has, and the units. In a process of its own, which may wait for drives
// and for the network; a thread for each connection, buffers from a fixed pool.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/serve/offer.hpp"
#include "fleet/serve/published.hpp"
#include "fleet/serve/walks.hpp"
#include "fleet/transport/channel.hpp"
#include "fleet/transport/http.hpp"
#include "staging/files/io/throttle.hpp"

namespace spark::fleet {

struct ServerSettings {
  Endpoint listen;
  std::filesystem::path cache, state_dir, boards;  // folders
  NodeId node = 0;
  std::string version;  // of this program
  Bytes upload = 0;     // bytes per second while `is_limited`; 0: no limit
};

// Since the start.
struct ServedCounts {
  std::atomic<std::uint64_t> connections{0}, refused{0}, units{0};
  std::atomic<Bytes> bytes{0};
};

class Server {
 public:
  // `may_ask`: whether a host that calls itself so, from that address, is a peer.
  using MayAsk = std::function<bool(const std::string& identity, const std::string& address)>;
  Server(ServerSettings settings, std::shared_ptr<Security> security, MayAsk may_ask);

  // Until `stop`, or an error of the listening socket.
  Result<> run(const StopFlag& stop);
  void limit(bool is_limited) { is_limited_ = is_limited; }
  void look();  // at the copies that are published now; see PublishedCopies::look
  const ServedCounts& counts() const { return counts_; }

 private:
  ServerSettings settings_;
  std::shared_ptr<Security> security_;
  MayAsk may_ask_;
  PublishedCopies published_;
  Walks walks_;
  ServedCounts counts_;
  staging::Throttle throttle_;
  std::atomic<bool> is_limited_{false};
  std::atomic<unsigned> open_{0};  // connections

  std::mutex offers_mutex_;
  std::map<std::string, std::shared_ptr<Offer>> offers_;  // by set and origin: asked for lately

  std::mutex buffers_mutex_;
  std::condition_variable buffer_free_;
  std::vector<std::unique_ptr<staging::IoBuffer>> free_buffers_;
  unsigned buffers_ = 0;

  void serve(UniqueFd socket);
  Result<> answer(Channel& channel, const PeerRequest& request);
  Result<> send(Channel& channel, const AnswerHead& head, std::string_view body);
  Result<> send_unit(Channel& channel, const PeerRequest& request);
  Result<> send_file(Channel& channel, const std::optional<std::filesystem::path>& path);
  std::shared_ptr<Offer> offer_for(const PeerRequest& request);
  bool is_offered(const std::string& set, const Offer& offer) const;
  std::unique_ptr<staging::IoBuffer> take_buffer();
  void give_back(std::unique_ptr<staging::IoBuffer> buffer);
};

}  // namespace spark::fleet
