#include "nvmetcp/types.hpp"

#include "base/text.hpp"

namespace spark::nvmetcp {

std::string to_string(const Portal& portal) {
  const bool bracketed = portal.address.find(':') != std::string::npos;
  const std::string address = printable(portal.address);
  return (bracketed ? "[" + address + "]" : address) + ":" + std::to_string(portal.port);
}

}  // namespace spark::nvmetcp
