#include "fleet/link/judge.hpp"

#include <algorithm>

namespace spark::fleet {
namespace {

// A link in order gives TCP 94 % of its speed with packets of 1500 bytes.
constexpr double kEnough = 0.65, kHalf = 0.4;
// Of a connection's two threads together: where processors set the rate, one of them is always at work.
constexpr double kBusy = 0.9;
constexpr double kBitsOfMegabit = 1e6, kBitsOfByte = 8;

std::string in_bits(double bytes_per_second) {
  return format_bits(bytes_per_second * kBitsOfByte);
}

std::string speed(unsigned megabits) {
  return format_bits(megabits * kBitsOfMegabit);
}

std::string name_of(const LinkFacts& facts) {
  return facts.peer + " (" + facts.address + ")";
}

double moved(const WayRate& way) {
  return std::max(way.bytes_per_second, way.card_bytes_per_second);
}

std::string rates_of(const LinkFacts& facts) {
  return in_bits(facts.from.bytes_per_second) + " from it and " + in_bits(facts.to.bytes_per_second) +
         " to it";
}

// 0: unknown, as that of a card which may be the slower one.
unsigned link_megabits(const LinkFacts& facts) {
  return std::min(facts.card.megabits, facts.peer_megabits);
}

LinkFinding packets(const LinkFacts& facts) {
  const std::string works = std::to_string(facts.works), packet = std::to_string(facts.packet);
  return {true, "mtu",
          "packets of " + packet + " bytes do not pass to " + name_of(facts) + ", packets of " + works +
              " bytes do",
          "both ends use " + packet +
              " bytes, and a device between them drops them: connections are made, "
              "and transfers stall or crawl",
          "raise the MTU of the switch ports between them; or on both hosts: sudo ip link set " +
              facts.card.name + " mtu " + works + " (and in netplan)"};
}

LinkFinding interface(const LinkFacts& facts) {
  const BetterWay& better = *facts.better;
  const bool is_same = better.address == facts.address;
  return {true, "interface",
          "data to " + name_of(facts) + " goes through " + facts.card.name + " (" + speed_of(facts.card) +
              "), though " + better.card + " (" + speed(better.megabits) + ") leads to it as well" +
              (is_same ? "" : ", at " + better.address),
          is_same ? "the kernel's route to " + facts.address + " takes " + facts.card.name
                  : "the fleet uses the address that fleet.peers has, and " + facts.address +
                        " lies behind " + facts.card.name,
          is_same ? "sudo ip route replace " + facts.address + " dev " + better.card +
                        " (and in netplan); ip route get " + facts.address
                  : "list " + better.address + " first under fleet.peers." + facts.peer +
                        ", let fleet.listen have it there; then: sudo systemctl reload spark-staged"};
}

LinkFinding other_card(const LinkFacts& facts) {
  return {true, "interface",
          "data from " + name_of(facts) + " arrives through " + facts.arrives_by + ", not through " +
              facts.card.name,
          "two cards in one network answer for each other, and the slower one may carry the data",
          "give each card a network of its own, or: sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 "
          "net.ipv4.conf.all.arp_announce=2"};
}

LinkFinding stalled(const LinkFacts& facts, const Error& error) {
  return {true, "stalls", "a transfer with " + name_of(facts) + " stalled: " + error.what,
          "the connection was made, and then no data came through it",
          "look for dropped packets at both ends: ip -s link show " + facts.card.name};
}

std::string pcie_words(const Nic& card) {
  if (card.pcie_megabits == 0 || card.pcie_megabits >= card.megabits) return "";
  return "; its PCIe lanes carry at most " + speed(card.pcie_megabits);
}

LinkFinding half(const LinkFacts& facts) {
  const bool is_known = !facts.other_half.empty();
  const double most = facts.card.pcie_megabits * kBitsOfMegabit / kBitsOfByte;
  const bool is_chosen =
      is_known && facts.is_other_half_used && std::max(moved(facts.from), moved(facts.to)) >= kEnough * most;
  return {!is_chosen, "half",
          "the link to " + name_of(facts) + " moves half of its speed: " + rates_of(facts) + " of " +
              speed(link_megabits(facts)) + " on " + facts.card.name,
          is_known ? "each port of a ConnectX-7 in a Spark consists of two cards, and the other half of this "
                     "one is " +
                         facts.other_half +
                         (facts.is_other_half_used ? ", which has an address of its own"
                                                   : ", which is not in use") +
                         pcie_words(facts.card)
                   : "one half of a port that consists of two cards carries everything, or one cable of a "
                     "bond" +
                         pcie_words(facts.card),
          is_known ? "give " + facts.other_half +
                         " an address in a network of its own and bond or use both halves: docs/fleet.md, "
                         "\"Test the links\""
                   : "see which cards share the port: ethtool -i " + facts.card.name +
                         "; ip -br link; cat "
                         "/proc/net/bonding/*"};
}

LinkFinding slow(const LinkFacts& facts) {
  return {true, "slow",
          "the link to " + name_of(facts) + " negotiated " + speed(link_megabits(facts)) + " on " +
              facts.card.name + " and moves " + rates_of(facts),
          "neither host's processors were the limit, so something between the two cards is" +
              pcie_words(facts.card),
          "look for errors and pauses at both ends: ethtool -S " + facts.card.name +
              " | grep -E 'discard|drop|err|pause'; then for a rate limit (tc qdisc show dev " +
              facts.card.name + "), the cable and the switch port"};
}

LinkFinding processor(const LinkFacts& facts) {
  const WayRate& way = is_fast_enough(facts, facts.from) ? facts.to : facts.from;
  const bool is_own = way.own_busy >= way.peer_busy;
  return {false, "cpu",
          "the transfer with " + name_of(facts) + " was limited by the processors of " +
              (is_own ? "this host" : facts.peer) + ": " + rates_of(facts) + " of " +
              speed(link_megabits(facts)),
          "that says nothing against the link, which may be able to carry more",
          "repeat it while " + std::string(is_own ? "this host" : facts.peer) + " has less to do"};
}

void judge_rates(const LinkFacts& facts, std::vector<LinkFinding>& all) {
  const bool is_from_slow = !is_fast_enough(facts, facts.from), is_to_slow = !is_fast_enough(facts, facts.to);
  const bool is_from_at_fault = is_from_slow && !is_limited_by_cpu(facts.from);
  const bool is_to_at_fault = is_to_slow && !is_limited_by_cpu(facts.to);
  if (!is_from_slow && !is_to_slow) return;
  if (!is_from_at_fault && !is_to_at_fault) {
    all.push_back(processor(facts));
    return;
  }
  const auto is_half = [&](const WayRate& way) {
    return way.limit == 0 && moved(way) >= kHalf * possible_rate(facts, way);
  };
  const bool all_half = (!is_from_at_fault || is_half(facts.from)) && (!is_to_at_fault || is_half(facts.to));
  all.push_back(all_half ? half(facts) : slow(facts));
}

}  // namespace

double possible_rate(const LinkFacts& facts, const WayRate& way) {
  const double link = link_megabits(facts) * kBitsOfMegabit / kBitsOfByte;
  const auto limit = static_cast<double>(way.limit);
  return limit > 0 && (link == 0 || limit < link) ? limit : link;
}

bool is_fast_enough(const LinkFacts& facts, const WayRate& way) {
  return moved(way) >= kEnough * possible_rate(facts, way);
}

bool is_limited_by_cpu(const WayRate& way) {
  return way.own_busy + way.peer_busy >= kBusy;
}

std::vector<LinkFinding> judge(const LinkFacts& facts) {
  if (facts.error)
    return {{true, "silent", name_of(facts) + " can't be tested: " + facts.error->what,
             "its link is not used, and its datasets are read from the volume",
             facts.error->hint.empty() ? "on " + facts.peer + ": spark-stage status" : facts.error->hint}};
  std::vector<LinkFinding> all;
  const bool are_packets_lost = facts.works != 0 && facts.works < facts.packet;
  if (are_packets_lost) all.push_back(packets(facts));
  if (facts.better) all.push_back(interface(facts));
  if (!facts.better && !facts.arrives_by.empty()) all.push_back(other_card(facts));
  const auto& error = facts.from.error ? facts.from.error : facts.to.error;
  if (error && !are_packets_lost) all.push_back(stalled(facts, *error));
  if (!error && !are_packets_lost) judge_rates(facts, all);
  if (facts.card.megabits != 0 && facts.card.megabits < facts.most_megabits)
    all.push_back({false, "negotiated",
                   facts.card.name + ", the card to " + name_of(facts) + ", negotiated " +
                       speed_of(facts.card) + " and can do " + speed(facts.most_megabits),
                   "the cable, or the card or switch port at its other end, allows no more",
                   "ethtool " + facts.card.name + " shows the speeds of both ends"});
  return all;
}

}  // namespace spark::fleet
