# test.sh: checks words.sh.
got=$(sh ./words.sh one two three)
if [ "$got" = 3 ]; then
    echo "ok: three words are 3"
else
    echo "FAILED: three words were counted as $got"
    exit 1
fi
