#!/bin/bash
# The file system of the kit's own tasks: a small workshop of notes, parts and logs.
mkdir -p /shop/parts/old /shop/notes /shop/logs/2023 /shop/logs/2024
echo 'bolt,40,12' > /shop/parts/metal.csv
echo 'nut,60,8' >> /shop/parts/metal.csv
echo 'hinge,7,90' >> /shop/parts/metal.csv
echo 'plank,12,150' > /shop/parts/wood.csv
echo 'dowel,80,5' >> /shop/parts/wood.csv
cp /shop/parts/wood.csv /shop/parts/old/boards.csv
echo 'bolt,40,12' > /shop/parts/old/metal.csv
echo 'Order hinges from Brandt' > /shop/notes/monday.txt
echo 'Sharpen the saw' > /shop/notes/tuesday.txt
echo 'TODO: count the dowels' >> /shop/notes/tuesday.txt
echo 'TODO: oil the door' > /shop/notes/friday.txt
printf 'start\nerror: belt\nstop\n' > /shop/logs/2023/saw.log
printf 'start\nstop\n' > /shop/logs/2024/saw.log
printf 'start\nerror: heat\nerror: dust\nstop\n' > /shop/logs/2024/drill.log
printf '#!/bin/bash\nls /shop\n' > /shop/list.sh
printf '#!/bin/bash\ndate\n' > /shop/logs/stamp.sh
touch /shop/notes/empty.txt
