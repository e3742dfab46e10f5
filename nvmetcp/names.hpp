// The kernel's names of controllers and namespaces. Never an identity: they follow the order of connecting.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spark::nvmetcp {

// "nvme3", and nothing that could leave a folder.
bool is_controller_name(std::string_view name);

// "nvme3n1" (a block device), or "nvme3c5n1" (the hidden path of controller 5 to nvme3n1).
struct NamespaceName {
  std::string subsystem;  // "nvme3"
  std::string head;       // "n1"
  std::string block_device() const { return subsystem + head; }
};
std::optional<NamespaceName> parse_namespace_name(std::string_view name);

}  // namespace spark::nvmetcp
