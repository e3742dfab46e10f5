#include "fleet/link/end.hpp"

#include <algorithm>

#include "base/network/addresses.hpp"
#include "base/text.hpp"

namespace spark::fleet {

LinkEnd end_at(const std::string& address, Bytes limit) {
  LinkEnd end;
  end.interface = interface_of(address);
  end.limit = limit;
  std::vector<Nic> nics = read_nics(SystemRoot{});
  if (const Nic* used = find_nic(nics, end.interface)) {
    end.megabits = used->megabits;
    end.mtu = used->mtu;
    end.received = used->received;
    end.sent = used->sent;
  }
  for (const std::string& own : own_addresses()) {
    const std::string name = interface_of(own);
    for (Nic& nic : nics)
      if (nic.name == name) nic.networks.push_back(own);
  }
  for (Nic& nic : nics)
    if (nic.is_up && !nic.networks.empty()) end.cards.push_back(std::move(nic));
  end.load = current_load();
  end.clock = std::chrono::steady_clock::now().time_since_epoch();
  return end;
}

json::object to_json(const LinkEnd& end) {
  json::array cards, interrupts;
  for (const Nic& card : end.cards)
    cards.push_back(json::object{{"name", card.name},
                                 {"megabits", card.megabits},
                                 {"addresses", json::array(card.networks.begin(), card.networks.end())}});
  for (const std::uint64_t ticks : end.load.interrupts) interrupts.emplace_back(ticks);
  return {{"interface", end.interface},
          {"megabits", end.megabits},
          {"mtu", end.mtu},
          {"received", end.received},
          {"sent", end.sent},
          {"limit", end.limit},
          {"cards", std::move(cards)},
          {"thread_ns", end.load.thread.count()},
          {"interrupts", std::move(interrupts)},
          {"clock_ns", end.clock.count()}};
}

LinkEnd link_end_from(const json::object& object) {
  LinkEnd end;
  end.interface = get_shown(object, "interface");
  end.megabits = static_cast<unsigned>(get_count(object, "megabits"));
  end.mtu = static_cast<unsigned>(get_count(object, "mtu"));
  end.received = get_count(object, "received");
  end.sent = get_count(object, "sent");
  end.limit = get_count(object, "limit");
  for (const json::object& card : objects_in(object, "cards")) {
    Nic& nic = end.cards.emplace_back();
    nic.name = get_shown(card, "name");
    nic.megabits = static_cast<unsigned>(get_count(card, "megabits"));
    nic.networks = get_strings(card, "addresses");
  }
  end.load.thread = std::chrono::nanoseconds(get_count(object, "thread_ns"));
  end.clock = std::chrono::nanoseconds(get_count(object, "clock_ns"));
  for (const json::value& ticks : get_list(object, "interrupts"))
    end.load.interrupts.push_back(ticks.is_number() ? ticks.to_number<std::uint64_t>() : 0);
  return end;
}

}  // namespace spark::fleet
