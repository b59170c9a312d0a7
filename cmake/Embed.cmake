# Makes a C++ source that holds a file's bytes. As a function it adds the build rule; as a script (cmake -P) it writes.
#
#   wring_embed(OUT.cc NAMESPACE NAME FILE [NAME FILE ...])
#
# OUT.cc defines `extern const std::string_view NAME` for each file.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/Embed.cmake.\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n")
  string(REPLACE "|" ";" PAIRS "${PAIRS}")
  while(PAIRS)
    list(POP_FRONT PAIRS name file)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND text "static const unsigned char ${name}Bytes[] = {${bytes}0};\n"
      "extern const std::string_view ${name};\n"
      "const std::string_view ${name}(reinterpret_cast<const char*>(${name}Bytes), sizeof ${name}Bytes - 1);\n")
  endwhile()
  file(WRITE "${OUT}" "${text}}  // namespace ${NAMESPACE}\n")
  return()
endif()

function(wring_embed out namespace)
  set(files ${ARGN})
  set(inputs)
  while(files)
    list(POP_FRONT files name file)
    list(APPEND inputs ${file})
  endwhile()
  string(REPLACE ";" "|" pairs "${ARGN}")
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAMESPACE=${namespace} "-DPAIRS=${pairs}" -P
      ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    VERBATIM)
endfunction()
