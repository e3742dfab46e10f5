// A host for doctor: a tree of files, and recorded answers of ip and ping.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "doctor/doctor.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::test {

class FakeHost {
 public:
  // A correct host: identity, driver, one fast card to one target with its full packet size.
  FakeHost() {
    const auto identity = test_host();
    files.write("etc/machine-id", "0123456789abcdef0123456789abcdef");
    files.write("etc/nvme/hostnqn", identity.nqn);
    files.write("etc/nvme/hostid", identity.id);
    files.write("sys/module/nvme_tcp/version", "1");
    files.write("proc/net/unix",
                "Num RefCount Protocol Flags Type St Inode Path\n"
                "0: 00000002 00000000 00010000 0001 01 21 /run/spark-stage/api.sock");
    files.write("proc/meminfo",
                "MemTotal: 131072000 kB\nMemFree: 90000000 kB\nCached: 20000000 kB\nShmem: 0 kB\n"
                "Dirty: 100 kB\nWriteback: 0 kB");
    std::filesystem::create_directories(files.root() / "var/lib/spark-stage/cache");
    add_nic("fast0", 200'000, 9000, "192.168.0.188");
    add_target("192.168.0.100");
  }

  void add_nic(const std::string& name, unsigned megabits, unsigned mtu, const std::string& address) {
    const std::string folder = "sys/class/net/" + name + "/";
    files.write(folder + "operstate", "up");
    files.write(folder + "speed", std::to_string(megabits));
    files.write(folder + "mtu", std::to_string(mtu));
    files.write(folder + "statistics/rx_bytes", "1000");
    files.write(folder + "statistics/tx_bytes", "1000");
    addresses += std::string(addresses.empty() ? "" : ",") + R"({"ifname": ")" + name +
                 R"(", "addr_info": [{"local": ")" + address + R"(", "prefixlen": 24}]})";
  }

  void add_target(const std::string& address, const std::string& interface = "") {
    config::Target target;
    target.name = "rose";
    target.portals = {{address, 4420}};
    target.options.interface = interface;
    config.targets["rose"] = target;
    config::Volume volume;
    volume.name = "datasets";
    volume.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    volume.mount = "/mnt/datasets";
    config.volumes = {volume};
  }

  doctor::Host host() {
    return {files.root(),
            has_config ? Result<config::Config>(config)
                       : Result<config::Config>(fail(Errc::NotFound, "there is no config file")),
            [this](const std::vector<std::string>& argv) { return answer(argv); },
            [this](const std::function<Result<json::object>()>& work) { return with_room(work()); },
            "/run/spark-stage/api.sock",
            "6.17.0-1014-nvidia",
            true,
            true,
            {},
            20,
            [this](const std::string& device) { return read_beginning(device); },
            [this](const std::string&, std::uint32_t) -> Result<nvmetcp::ReservationReport> {
              if (registrants.empty()) return fail(Errc::Unsupported, "it offers no reservations");
              return nvmetcp::ReservationReport{1, 1, registrants};
            },
            [this](const nvmetcp::Portal&, const std::string&) -> Result<unsigned> {
              if (negotiated_packet == 0) return fail(Errc::Unavailable, "connection refused");
              return negotiated_packet;
            },
            [this]() -> Result<json::object> {
              if (status.empty()) return fail(daemon_error, "no answer within 10 s");
              return parse_json_object(status);
            }};
  }

  FakeSysfs files;
  config::Config config;
  bool has_config = true;
  std::string addresses;        // for `ip address`, links separated by commas
  std::string route = "fast0";  // the card that `ip route get` reports; empty: no route
  std::string gateway;
  std::string replies_come_in = "fast0";
  unsigned largest_packet = 9000;     // the largest that is answered; 0: no answer to any ping
  unsigned negotiated_packet = 9000;  // by both ends of a TCP connection; 0: the target refuses it
  bool has_tools = true, tlshd_runs = true;
  std::string ethtool;                           // its output for each card; empty: it has none
  std::string apt_policy;                        // what apt knows of libnvme; empty: there is no apt
  std::vector<nvmetcp::Registrant> registrants;  // of every namespace; no value: no reservations
  std::string status = "{}";                     // from the daemon; empty: it does not answer
  std::string data_comes_in = "fast0";           // the card with increasing counters; empty: none
  bool reads_hang = false;
  Errc daemon_error = Errc::TimedOut;  // without a status
  std::vector<std::string> reads;      // devices
  Bytes free = 78'700'000'000;         // on the cache's drive, of 1 TB

 private:
  // The drive that holds this computer's temporary files may be full.
  Result<json::object> with_room(Result<json::object> looked) const {
    if (looked && looked->contains("free")) {
      (*looked)["total"] = Bytes{1'000'000'000'000};
      (*looked)["free"] = free;
    }
    return looked;
  }

  Result<Bytes> read_beginning(const std::string& device) {
    reads.push_back(device);
    if (reads_hang) return fail(Errc::TimedOut, "no answer within 5 s");
    if (!data_comes_in.empty()) receive(data_comes_in, 1 << 20);
    return Bytes{1} << 20;
  }

  void receive(const std::string& nic, std::uint64_t bytes) {
    const std::string counter = "sys/class/net/" + nic + "/statistics/rx_bytes";
    files.write(counter, std::to_string(std::stoull(files.read(counter)) + bytes));
  }

  Result<ChildOutput> answer(const std::vector<std::string>& argv) {
    if (!has_tools) return fail(Errc::NotFound, "running " + argv[0] + ": No such file or directory");
    if (argv[0] == "ping") return ping(argv);
    if (argv[0] == "env" && argv[1] == "LC_ALL=C" && argv[2] == "apt-cache")
      return ChildOutput{apt_policy.empty() ? 1 : 0, apt_policy, ""};
    if (argv[0] == "systemctl") return ChildOutput{tlshd_runs ? 0 : 3, "", ""};
    if (argv[0] == "ethtool") return ChildOutput{ethtool.empty() ? 1 : 0, ethtool, ""};
    if (argv[2] == "address") return ChildOutput{0, "[" + addresses + "]", ""};
    if (route.empty()) return ChildOutput{2, "", "RTNETLINK answers: Network is unreachable\n"};
    const std::string through = gateway.empty() ? "" : R"(, "gateway": ")" + gateway + "\"";
    const auto asked = std::find(argv.begin(), argv.end(), "oif");
    const std::string card = asked == argv.end() ? route : *(asked + 1);
    return ChildOutput{0, R"([{"dst": "x", "dev": ")" + card + "\"" + through + "}]", ""};
  }

  Result<ChildOutput> ping(const std::vector<std::string>& argv) {
    const auto size = std::find(argv.begin(), argv.end(), "-s");
    const unsigned packet = static_cast<unsigned>(std::stoul(*(size + 1))) + 28;
    if (packet > largest_packet) return ChildOutput{1, "", ""};
    receive(replies_come_in, 5 * packet);
    return ChildOutput{0, "", ""};
  }
};

}  // namespace spark::test
