# Runs RUN (a list) if FOLDER exists; else says "skipped", which CTest understands.
if(NOT IS_DIRECTORY ${FOLDER})
  message("skipped: ${FOLDER} is not there; tools/models makes it")
  return()
endif()
execute_process(COMMAND ${RUN} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}")
endif()
