// The hosts of a fleet, and a dataset's copies on them.
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kHashOfCopy = 5;

// "eth1 (25.0 GB/s)"; empty: not known.
std::string link_in_words(const json::object& host) {
  std::string words = get_shown(host, "interface");
  const Bytes link = get_count(host, "link_bytes_per_second");
  if (link > 0) words += " (" + format_rate(static_cast<double>(link)) + ")";
  return words;
}

void add_dataset(Table& table, const json::object& dataset) {
  const bool same = get_bool(dataset, "same").value_or(false);
  std::string name = cell_of(dataset, "name");
  for (const json::object& host : objects_in(dataset, "hosts")) {
    table.add({{std::exchange(name, "")},
               {printable(get_string(host, "host").value_or("this host"))},
               {std::to_string(get_count(host, "generation"))},
               {format_bytes(get_count(host, "bytes"))},
               {format_count(get_count(host, "files"))},
               {cell_of(host, "hash"), same ? Colour::None : Colour::Red}});
  }
  if (!same) table.add_note("the copies differ: stage it again where it is older, or verify it");
}

// One line: "llama: 16.1 GB offered to peers from its folder".
void print_adopted(std::ostream& out, const json::object& folder) {
  out << "  " << cell_of(folder, "name") << ": ";
  if (get_string(folder, "state") == "offered") {
    out << format_bytes(get_count(folder, "bytes")) << " offered to peers from its folder";
    if (const auto why = get_string(folder, "reason")) out << "; " << printable(*why);
    out << "\n";
  } else {
    out << "its folder is not offered to peers: " << cell_of(folder, "reason") << "\n";
  }
}

}  // namespace

void print_fleet(std::ostream& out, const Terminal& terminal, const json::object& fleet) {
  out << "\n" << coloured("FLEET", Colour::Faint, terminal.colour) << "\n";
  out << cell_of(fleet, "listen");
  if (const std::string link = link_in_words(fleet); !link.empty()) out << " on " << link;
  if (const auto why = get_string(fleet, "reason")) {
    out << ": " << printable(*why) << "\n";
  } else {
    out << ": " << format_bytes(get_count(fleet, "served_bytes")) << " served to peers\n";
  }
  for (const json::object& peer : objects_in(fleet, "peers")) {
    out << "  " << cell_of(peer, "name") << ": ";
    if (const auto why = get_string(peer, "reason")) {
      out << printable(*why) << "\n";
      continue;
    }
    out << "answers at " << cell_of(peer, "address");
    if (const std::string link = link_in_words(peer); !link.empty()) out << " on " << link;
    out << ", version " << cell_of(peer, "version") << "\n";
  }
  for (const json::object& folder : objects_in(fleet, "adopted")) print_adopted(out, folder);
  for (const json::object& host : objects_in(fleet, "refused_hosts"))
    out << "  " << cell_of(host, "address") << " was refused: " << cell_of(host, "reason") << "\n";
}

void print_fleet_datasets(std::ostream& out, const Terminal& terminal, const json::object& answer) {
  const auto datasets = objects_in(answer, "datasets");
  if (datasets.empty()) {
    out << "Nothing is staged on any host that answers.\n";
  } else {
    Table table({"DATASET", "HOST", "GENERATION", "SIZE", "FILES", "HASH"}, {0, kHashOfCopy});
    for (const json::object& dataset : datasets) add_dataset(table, dataset);
    table.print(out, terminal);
  }
  for (const json::object& peer : objects_in(answer, "peers")) {
    const auto why = get_string(peer, "reason");
    if (why) out << sentence(cell_of(peer, "name") + ": " + printable(*why), terminal.columns, terminal.out);
  }
}

}  // namespace spark::cli
