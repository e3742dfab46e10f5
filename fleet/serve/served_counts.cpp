#include "fleet/serve/served_counts.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace spark::fleet {
namespace {

constexpr std::size_t kMostHosts = 16;  // that were refused: any program can connect
constexpr std::chrono::minutes kRecent{5};
constexpr const char* kNames[kRefusals] = {"unlisted", "key", "share"};
constexpr const char* kReasons[kRefusals] = {
    "its address belongs to no peer in the configuration of this host",
    "it does not have this fleet's key, or does not speak TLS 1.3",
    "it has as many connections as one host may have"};

}  // namespace

void ServedCounts::connected() {
  const std::scoped_lock lock(mutex_);
  ++connections_;
}

void ServedCounts::sent(const std::string& client, Bytes bytes) {
  const std::scoped_lock lock(mutex_);
  Client& one = clients_[client];
  one.bytes += bytes;
  ++one.units;
}

void ServedCounts::failed(const std::string& client) {
  const std::scoped_lock lock(mutex_);
  ++clients_[client].failures;
}

void ServedCounts::refused(const std::string& address, Refusal why, SteadyTime now) {
  const std::scoped_lock lock(mutex_);
  ++refused_[static_cast<std::size_t>(why)];
  std::erase_if(refused_hosts_, [&](const auto& one) { return now - one.second > kRecent; });
  const std::pair host(address, why);
  if (refused_hosts_.size() < kMostHosts || refused_hosts_.contains(host)) refused_hosts_[host] = now;
}

json::object ServedCounts::report(SteadyTime now) const {
  const std::scoped_lock lock(mutex_);
  Client all;
  json::array clients, hosts;
  for (const auto& [address, client] : clients_) {
    all.bytes += client.bytes;
    all.units += client.units;
    clients.push_back(
        json::object{{"address", address}, {"bytes", client.bytes}, {"failures", client.failures}});
  }
  for (const auto& [host, at] : refused_hosts_) {
    if (now - at <= kRecent)
      hosts.push_back(
          json::object{{"address", host.first}, {"reason", kReasons[static_cast<std::size_t>(host.second)]}});
  }
  json::object refused_by;
  for (std::size_t why = 0; why < kRefusals; ++why) refused_by[kNames[why]] = refused_[why];
  return {{"served_bytes", all.bytes},
          {"served_units", all.units},
          {"connections", connections_},
          {"refused", std::accumulate(refused_.begin(), refused_.end(), std::uint64_t{0})},
          {"refused_by", std::move(refused_by)},
          {"refused_hosts", std::move(hosts)},
          {"clients", std::move(clients)}};
}

}  // namespace spark::fleet
