# The programs of the documents, compiled and run as they stand there (scripts/doc_code.py), each in an empty directory.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(nni_add_document_tests)
  file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md" "${PROJECT_SOURCE_DIR}/docs/how-to/*.md")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages} "${PROJECT_SOURCE_DIR}/scripts/doc_code.py")
  set(code "${CMAKE_CURRENT_BINARY_DIR}/documents")
  execute_process(COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/scripts/doc_code.py" "${code}" ${pages}
    OUTPUT_VARIABLE programs COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" programs "${programs}")
  foreach(program IN LISTS programs)
    string(REPLACE " " ";" program "${program}")
    list(GET program 0 page)
    list(GET program 1 source)
    cmake_path(GET source STEM stem)
    set(name "document_${page}_${stem}")
    add_executable(${name} "${code}/${page}/${source}")
    target_link_libraries(${name} PRIVATE nni_default)
    add_test(NAME "document: ${page}, ${source}"
      COMMAND sh -c "d=$(mktemp -d) && cd \"$d\" && \"$0\"; s=$?; rm -rf \"$d\"; exit $s" $<TARGET_FILE:${name}>)
    set_tests_properties("document: ${page}, ${source}" PROPERTIES LABELS behaviour TIMEOUT 60)
    nni_label_target(${name} behaviour)
  endforeach()
  # What the page promises its reader: a service of one's own is short.
  add_test(NAME "document: training-service, at most 120 lines"
    COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/scripts/doc_code.py" --lines custom_service_lines
      "${PROJECT_SOURCE_DIR}/docs/how-to/training-service.md" shell_service.hpp 120)
  set_tests_properties("document: training-service, at most 120 lines" PROPERTIES LABELS behaviour)
endfunction()
