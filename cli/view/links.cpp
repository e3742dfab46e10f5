// The links to the fleet's peers, as tested.
#include "base/network/nics.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"

namespace spark::cli {
namespace {

constexpr double kBitsOfByte = 8, kBitsOfMegabit = 1e6;

std::string rate_of(const json::object& link, std::string_view key, double bits) {
  const auto number = get_int(link, key);
  return number ? format_bits(static_cast<double>(*number) * bits) : "-";
}

std::string number_of(const json::object& link, std::string_view key) {
  const auto number = get_int(link, key);
  return number ? std::to_string(*number) : "-";
}

}  // namespace

void print_links(std::ostream& out, const Terminal& terminal, const json::object& report) {
  const auto links = objects_in(report, "links");
  if (links.empty()) return;
  Table table({"PEER", "ADDRESS", "CARD", "LINK", "FROM IT", "TO IT", "PACKETS"}, {0, 1, 2});
  for (const json::object& link : links) {
    const Colour colour = get_list(link, "faults").empty() ? Colour::None : Colour::Red;
    table.add({{cell_of(link, "peer"), colour},
               {cell_of(link, "address")},
               {cell_of(link, "interface")},
               {rate_of(link, "megabits", kBitsOfMegabit)},
               {rate_of(link, "received_bytes_per_second", kBitsOfByte)},
               {rate_of(link, "sent_bytes_per_second", kBitsOfByte)},
               {number_of(link, "packet")}});
  }
  table.print(out, terminal);
  out << "\n";
}

}  // namespace spark::cli
