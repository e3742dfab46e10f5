# Run by `cmake --install`: completions go where each shell looks by itself, which depends on the prefix: Debian's zsh and fish
# look below /usr for packages; of the rest of the disk, zsh knows /usr/local/share/zsh/site-functions, and fish only /etc/fish.
# In: SOURCE, DATADIR.
set(SHARE "${CMAKE_INSTALL_PREFIX}/${DATADIR}")
set(ZSH "${SHARE}/zsh/site-functions")
set(FISH "${SHARE}/fish/vendor_completions.d")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(ZSH "${SHARE}/zsh/vendor-completions")
elseif(CMAKE_INSTALL_PREFIX STREQUAL "/usr/local")
  set(FISH "/etc/fish/completions")
endif()
file(INSTALL DESTINATION "${SHARE}/bash-completion/completions" TYPE FILE FILES "${SOURCE}/completions/spark-stage.bash" RENAME spark-stage)
file(INSTALL DESTINATION "${ZSH}" TYPE FILE FILES "${SOURCE}/completions/spark-stage.zsh" RENAME _spark-stage)
file(INSTALL DESTINATION "${FISH}" TYPE FILE FILES "${SOURCE}/completions/spark-stage.fish")
