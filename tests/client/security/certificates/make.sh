#!/bin/sh
# Makes the certificates here anew: a CA, a broker on localhost, a client, and a CA nobody knows
# that has signed for a broker, too.
# The keys protect nothing; they are here so that tests need no OpenSSL.
set -eu
cd "$(dirname "$0")"
for name in ca stranger; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 \
        -subj "/CN=Tidemark's test $name" -addext keyUsage=critical,keyCertSign \
        -keyout "$name.key" -out "$name.pem"
done
for name in localhost client impostor; do
    signer=ca
    [ $name = impostor ] && signer=stranger
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
        -keyout "$name.key" -out "$name.csr"
    printf 'subjectAltName=DNS:%s\n' "$name" >extensions
    openssl x509 -req -in "$name.csr" -CA $signer.pem -CAkey $signer.key -CAcreateserial -days 36500 \
        -extfile extensions -out "$name.pem"
    cat "$name.key" >>"$name.pem"
done
# As localhost.pem, with a key that "tides" opens.
openssl pkcs8 -topk8 -in localhost.key -passout pass:tides -out encrypted.key
openssl x509 -in localhost.pem >encrypted.pem
cat encrypted.key >>encrypted.pem
rm ./*.key ./*.csr ./*.srl extensions
